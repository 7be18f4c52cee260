"""Stories of one owner whose things come and go, and of people who compare."""

FRACTIONS = {3: "third", 4: "quarter", 5: "fifth"}


def inventory(story):
    """A number changes one to four times; the question asks for it or for an equal share."""
    single, plural = story.thing()
    words = {**story.actor(), "o": plural, "s": single}
    size = story.rng.choice((20, 60, 120, 400))
    count = story.number(3, size)
    story.say("have", n=count, **words)
    if story.chance(0.12):
        story.say("idle", n=story.number(2, 60), **words)
    changes = story.rng.choice((1, 2, 2, 3, 3, 4))
    for _ in range(changes):
        count = _change(story, count, size, words)
    if story.chance(0.25) and count > 3:
        divisors = [k for k in range(2, 11) if count % k == 0 and count // k < 100]
        if divisors:
            k = story.note(story.rng.choice(divisors))
            story.say("share?", k=k, **words)
            story.divide(count, k, "Each share is", plural)
            return
    story.say("now?", **words)


def _change(story, count, size, words):
    name, plural = words["A"], words["o"]
    words = {**words, "B": story.other_than(name)}
    while True:
        kind = story.rng.choice(("gain", "gain", "gain", "lose", "lose", "lose", "boxes", "boxes",
                                 "halve", "part", "double", "grow"))
        if kind == "gain":
            n = story.number(2, size)
            story.say(kind, opener=0.35, n=n, **words)
            return story.add(count, n, f"{name} has", plural)
        if kind == "lose" and count > 3:
            n = story.number(2, count - 1)
            story.say(kind, opener=0.35, n=n, **words)
            return story.take(count, n, f"{name} has", plural)
        if kind == "boxes":
            k, m = story.number(2, 9), story.number(2, 12 if size < 100 else 30)
            story.say(kind, opener=0.35, k=k, m=m, **words)
            more = story.times(k, m, "The new ones are", plural)
            return story.add(count, more, f"{name} has", plural)
        if kind == "halve" and count % 2 == 0 and count > 2:
            story.say(kind, opener=0.35, **words)
            return story.divide(count, 2, f"{name} has", plural)
        if kind == "part":
            parts = [k for k in FRACTIONS if count % k == 0]
            if parts:
                k = story.note(story.rng.choice(parts))
                story.say(kind, opener=0.35, f=FRACTIONS[k], **words)
                gone = story.divide(count, k, f"A {FRACTIONS[k]} is", plural)
                return story.take(count, gone, f"{name} has", plural)
        if kind == "double" and count < 500:
            story.say(kind, opener=0.35, **words)
            return story.times(count, 2, f"{name} has", plural)
        if kind == "grow" and count < 100:
            k = story.number(3, 5)
            story.say(kind, opener=0.35, k=k, **words)
            return story.times(count, k, f"{name} has", plural)


def comparison(story):
    """Two to four people, each compared with one before; total, difference or one of them."""
    single, plural = story.thing()
    count = story.rng.choice((2, 2, 3, 3, 4))
    names = [name for name, _ in story.person(count)]
    first = story.number(4, story.rng.choice((30, 90, 200)))
    values = [first]
    told = [("base", {"A": names[0], "n": first})]
    for index in range(1, count):
        other = story.rng.randrange(index)
        value, relation = _relation(story, values[other], names[index], names[other], plural)
        values.append(value)
        told.append(relation)
    if story.chance(0.15):
        story.rng.shuffle(told)
    for kind, words in told:
        story.say(kind, o=plural, s=single, **words)
    ending = story.rng.choice(("all?", "all?", "of?", "gap?"))
    if ending == "all?":
        story.say("all?", o=plural)
        story.add_all(values, "Together they have", plural)
    elif ending == "gap?" and values[0] != values[-1]:
        high, low = (0, -1) if values[0] > values[-1] else (-1, 0)
        story.say("gap?", A=names[high], B=names[low], o=plural)
        story.take(values[high], values[low], "The difference is", plural)
    else:
        story.say("of?", A=names[-1], o=plural)
        # The question asks for the last one, whose number is the last step.
        story.value = values[-1]


def _relation(story, value, name, other, plural):
    words = {"A": other, "B": name}
    about = f"{name}, next to {other} with {value}, has"
    while True:
        kind = story.rng.choice(("more", "more", "fewer", "fewer", "multiple", "twice", "half as"))
        if kind == "more":
            n = story.number(2, 80)
            return story.add(value, n, about, plural), (kind, {**words, "n": n})
        if kind == "fewer" and value > 3:
            n = story.number(2, value - 1)
            return story.take(value, n, about, plural), (kind, {**words, "n": n})
        if kind == "multiple" and value < 100:
            k = story.number(3, 6)
            return story.times(value, k, about, plural), (kind, {**words, "k": k})
        if kind == "twice" and value < 500:
            return story.times(value, 2, about, plural), (kind, words)
        if kind == "half as" and value % 2 == 0:
            return story.divide(value, 2, about, plural), (kind, words)


def ages(story):
    """Two or three ages, then a time in the future or past, or their sum."""
    count = story.rng.choice((2, 2, 3))
    names = [name for name, _ in story.person(count)]
    ages_so_far = [story.number(4, 30)]
    story.say("age", A=names[0], n=ages_so_far[0])
    for index in range(1, count):
        other = story.rng.randrange(index)
        age = ages_so_far[other]
        about = f"{names[index]}, next to {names[other]} with {age}, is"
        kind = story.rng.choice(("older", "younger", "times as old"))
        if kind == "times as old" and age <= 20:
            k = story.number(2, 4)
            story.say(kind, A=names[other], B=names[index], k=k)
            ages_so_far.append(story.times(age, k, about, "years old"))
        elif kind == "younger" and age > 4:
            n = story.number(2, age - 1)
            story.say(kind, A=names[other], B=names[index], n=n)
            ages_so_far.append(story.take(age, n, about, "years old"))
        else:
            n = story.number(2, 40)
            story.say("older", A=names[other], B=names[index], n=n)
            ages_so_far.append(story.add(age, n, about, "years old"))
    ending = story.rng.choice(("age in?", "age in?", "age ago?", "age sum?"))
    last = ages_so_far[-1]
    if ending == "age sum?":
        story.say(ending)
        story.add_all(ages_so_far, "Together they are", "years old")
    elif ending == "age ago?" and last > 3:
        n = story.number(2, min(last - 1, 20))
        story.say(ending, A=names[-1], n=n)
        story.take(last, n, f"Then {names[-1]} was", "years old")
    else:
        n = story.number(2, 30)
        story.say("age in?", A=names[-1], n=n)
        story.add(last, n, f"Then {names[-1]} will be", "years old")


def kinds(story):
    """Things of several colours: what is the rest?"""
    from .. import pools
    single, plural = story.thing()
    colours = list(pools.COLOURS["train"])
    if story.split == "heldout":
        colours += pools.COLOURS["heldout"]
    colours = story.rng.sample(colours, 3)
    words = {**story.actor(), "o": plural, "l": story.rng.choice(pools.PLACES[story.split])}
    count = story.number(20, story.rng.choice((60, 200, 900)))
    story.say("kinds", n=count, **words)
    for index in range(story.rng.choice((1, 2))):
        n = story.number(2, max(3, count // 2))
        story.say("other colour" if index else "colour", n=n, x=colours[index], **words)
        count = story.take(count, n, f"Without the {colours[index]} ones there are", plural)
    divisors = [k for k in range(2, 10) if count % k == 0 and count // k < 100]
    if story.chance(0.4) and divisors:
        k = story.note(story.rng.choice(divisors))
        story.say("rest boxed?", x=colours[2], k=k, **words)
        story.divide(count, k, "Each gets", plural)
    else:
        story.say("colour rest?", x=colours[2], **words)
