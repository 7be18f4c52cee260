"""Stories of buying, working, packing, sitting, reading and travelling."""
from .. import pools

UNITS = ["dollars", "coins", "euros", "cents"]


def shopping(story):
    unit = story.rng.choice(UNITS)
    words = {**story.actor(), "u": unit}
    kinds = pools.things(story.rng, story.split, 3)
    high = story.rng.choice((9, 20, 50))
    costs = []
    for index in range(story.rng.choice((1, 2, 2, 3))):
        single, plural = kinds[index]
        price = story.number(2, high)
        if index and story.chance(0.35):
            story.say("buy one", s=single, o=plural, c=price, **words)
            costs.append(price)
            continue
        n = story.number(2, 9)
        story.say("buy more" if index else "buy", n=n, s=single, o=plural, c=price, **words)
        costs.append(story.times(n, price, f"The {plural} cost", unit))
    total = costs[0]
    if len(costs) > 1:
        total = story.add_all(costs, "In all that is", unit)
    if story.chance(0.2) and total > 6:
        n = story.number(2, total // 2)
        story.say("discount", n=n, **words)
        total = story.take(total, n, "The price becomes", unit)
    ending = story.rng.choice(("cost?", "change?", "change?", "split?"))
    divisors = [k for k in range(2, 10) if total % k == 0 and total // k < 100]
    if ending == "change?":
        bill = story.note(total + story.rng.choice((story.rng.randint(1, 40), -total % 10,
                                                    -total % 50,
                                                    -total % 100)) or total + 10)
        story.say("pays", n=bill, **words)
        story.say("change?", **words)
        story.take(bill, total, f"{words['A']} has left", unit)
    elif ending == "split?" and divisors:
        k = story.note(story.rng.choice(divisors))
        story.say("split?", k=k, **words)
        story.divide(total, k, "Each pays", unit)
    else:
        story.say("cost?", **words)


def production(story):
    single, plural = story.thing()
    words = {**story.actor(), "o": plural, "s": single}
    name = words["A"]
    rate = story.number(3, story.rng.choice((12, 40, 90)))
    story.say("rate", n=rate, **words)
    if story.chance(0.3):
        more = story.number(2, 40)
        story.say("helper", B=story.other_than(name), n=more, **words)
        rate = story.add(rate, more, "In a day they make", plural)
        name = "They"
    if rate <= 20 and story.chance(0.6):
        _until_goal(story, rate, name, words)
        return
    k = story.number(2, 9)
    story.say("days", k=k, **words)
    total = story.times(rate, k, f"In {k} days that is", plural)
    if story.chance(0.35):
        n = story.number(2, 90)
        story.say("ready", n=n, **words)
        total = story.add(total, n, "With those before, there are", plural)
    if story.chance(0.45) and total > 4:
        n = story.number(2, total // 2)
        story.say("spoilt", n=n, **words)
        story.take(total, n, "There remain", plural)
        story.say("rest?", **words)
    else:
        story.say("total?", **words)


def _until_goal(story, rate, name, words):
    days = story.rng.randint(2, 12)
    need = rate * days
    if story.chance(0.5):
        done = story.number(2, 60)
        goal = story.note(need + done)
        story.say("goal", n=goal, **words)
        story.say("ready", n=done, **words)
        need = story.take(goal, done, "Still needed are", words["o"])
    else:
        story.say("goal", n=story.note(need), **words)
    story.say("days?", **words)
    story.divide(need, rate, "The work takes", "days")


def wages(story):
    unit = story.rng.choice(UNITS[:3])
    words = {**story.actor(), "u": unit}
    name = words["A"]
    pay, k = story.number(5, story.rng.choice((12, 30))), story.number(2, 9)
    story.say("wage", n=pay, **words)
    story.say("hours", k=k, **words)
    money = story.times(pay, k, f"{name} earns", unit)
    if story.chance(0.4):
        n = story.number(5, 150)
        story.say("saved", n=n, **words)
        money = story.add(money, n, f"{name} has", unit)
    for _ in range(story.rng.choice((0, 1, 1, 2))):
        if money > 6:
            n = story.number(2, money - 2)
            story.say("spend", opener=0.3, n=n, **words)
            money = story.take(money, n, f"{name} has", unit)
    story.say("money?", **words)


def packing(story):
    single, plural = story.thing()
    words = {**story.actor(), "o": plural, "s": single}
    k, n = story.number(2, 9), story.number(3, story.rng.choice((12, 30, 60)))
    story.say("packed", k=k, n=n, **words)
    count = story.times(k, n, "The boxes hold", plural)
    if story.chance(0.6) and count > 4:
        n = story.number(2, count // 2)
        story.say("damaged", n=n, **words)
        count = story.take(count, n, "Without those there are", plural)
    if story.chance(0.4):
        n = story.number(2, 60)
        story.say("loose", n=n, **words)
        count = story.add(count, n, "With the others there are", plural)
    divisors = [d for d in range(2, 10) if count % d == 0 and count // d < 100]
    if story.chance(0.5) and divisors:
        d = story.note(story.rng.choice(divisors))
        story.say("repack?", k=d, **words)
        story.divide(count, d, "That makes", "bags")
    else:
        story.say("rest?", **words)


def seats(story):
    words = {"l": story.rng.choice(pools.PLACES[story.split])}
    rows, each = story.number(3, 9), story.number(4, story.rng.choice((12, 40)))
    story.say("rows", n=rows, m=each, **words)
    total = story.times(rows, each, "There are", "seats")
    taken = story.number(2, total // 2)
    story.say("taken", n=taken)
    for _ in range(story.rng.choice((0, 1, 1, 2))):
        if story.chance(0.5) and total - taken > 4:
            n = story.number(2, (total - taken) // 2)
            story.say("more come", n=n)
            taken = story.add(taken, n, "Now the taken seats are", "seats")
        elif taken > 3:
            n = story.number(2, taken - 1)
            story.say("leave", n=n)
            taken = story.take(taken, n, "Now the taken seats are", "seats")
    if story.chance(0.7) or story.value == total:
        story.say("free?")
        story.take(total, taken, "Free are", "seats")
    else:
        story.say("seats?")


def journey(story):
    """A book or a way: so much a day, what is the total or what is left?"""
    words = story.actor()
    book = story.chance(0.5)
    unit = "pages" if book else "miles"
    m, k = story.number(4, story.rng.choice((20, 60))), story.number(2, 9)
    before = len(story.sentences)
    story.say("pages" if book else "trip", m=m, k=k, **words)
    done = story.times(m, k, f"In {k} days that is", unit)
    if story.chance(0.5):
        n = story.number(2, 90)
        story.say("more pages" if book else "trip more", n=n, **words)
        done = story.add(done, n, "In all that is", unit)
    if not book and story.chance(0.5):
        story.say("miles?", **words)
        return
    whole = story.note(done + story.rng.randint(1, 200))
    story.say("length" if book else "trip back", n=whole, **words)
    if book:  # The book is named before it is read.
        story.sentences.insert(before, story.sentences.pop())
    story.say("pages left?" if book else "miles left?", **words)
    story.take(whole, done, "There remain", unit)


def recipe(story):
    single, plural = story.rng.choice(pools.FOODS[story.split])
    words = {**story.actor(), "o": plural, "s": single}
    m, k = story.number(2, 9), story.number(2, 9)
    more = story.rng.randint(1, 9)
    asks_cakes = story.chance(0.5)
    left = more * m if asks_cakes else story.rng.randint(1, 90)
    count = story.note(m * k + left)
    story.say("have", n=count, **words)
    story.say("recipe", m=m, **words)
    story.say("bake", k=k, **words)
    used = story.times(k, m, "The cakes use", plural)
    left = story.take(count, used, f"{words['A']} has left", plural)
    if asks_cakes:
        story.say("cakes?", **words)
        story.divide(left, m, "That is enough for", "cakes")
    else:
        story.say("rest?", **words)
