"""Wordings that training uses beside those of WORDINGS; held-out problems never do.

They keep the held-out scores comparable while training meets more ways to say the same.
"""

MORE_OPENERS = """after a while|soon|one day|two days later|in July|on Thursday|in winter|at
night|all of a sudden|next morning|by and by|afterwards|on the way home|in the garden|a month
later,|when it rains,|before school|this time|once again""".replace("\n", " ").split("|")

MORE = {
    "have": [
        "{A} possesses {n} {o}.", "{n} {o} are in the bag of {A}.", "{A} counted {n} {o}.",
        "in the beginning {A} had {n} {o}.", "{A} came home with {n} {o}.", "{A} carries {n} {o}.",
        "on the desk of {A} lie {n} {o}.", "{A} once got {n} {o} from an aunt.",
        "all in all {A} has {n} {o}.", "with {n} {o} {A} starts the day.", "{A} stores {n} {o}.",
        "{n} {o} belong to {A} at first."],
    "gain": [
        "{A} is handed {n} {o} by {B}.", "{B} sends {n} {o} to {A}.",
        "{B} has {n} {o} too many and gives them to {A}.", "{n} {o} come from {B} to {A}.",
        "{B} finds {n} {o} and leaves them with {A}.", "{B} makes {n} {o} and sends them to {A}.",
        "{B} brings {A} another {n} {o}.", "{A} gains {n} {o}.", "{n} further {o} reach {A}.",
        "{B} visits {A} and brings along {n} {o}.", "from {B} {A} gets {n} {o}.",
        "{A} picks {n} {o} and keeps them.", "{A} is sent {n} more {o}.",
        "{B} gets {n} {o} and passes them on to {A}.", "{p} discovers {n} {o} under the bed.",
        "{B} lends {n} {o} to {A}.", "{A} orders {n} {o}, and they come.",
        "{p} now gets {n} {o} on top.", "{A} has a visit from {B}, who brings {n} {o}.",
        "{p} takes home another {n} {o}.", "{B} pays {A} with {n} {o}.",
        "{n} {o} are added by {B}.", "{A} inherits {n} {o}.", "{A} exchanges a hat for {n} {o}."],
    "lose": [
        "{B} is handed {n} of the {o}.", "{A} sends {n} {o} to {B}.", "{n} {o} go to {B}.",
        "{A} has no use for {n} {o} and drops them.", "{B} borrows {n} {o} from {A}.",
        "{n} {o} fall into the water.", "{A} uses up {n} {o}.", "{A} breaks {n} of the {o}.",
        "{p} passes {n} {o} on to {B}.", "{A} pays {B} with {n} {o}.",
        "{B} asks for {n} {o} and gets them.", "{n} of the {o} go missing.",
        "{A} forgets {n} {o} on the bus.", "{p} lets {B} have {n} {o}.",
        "{A} gives up {n} {o}.", "{n} {o} are taken by {B}.", "{p} puts {n} {o} in the bin.",
        "{B} wins {n} {o} from {A}.", "{A} exchanges {n} {o} for a hat.",
        "to {B} {A} gives {n} {o}.", "{A} drops {n} {o}, and they break.",
        "a thief gets {n} of the {o}.", "{p} can sell {n} of the {o}.",
        "{B} receives {n} of them."],
    "double": [
        "{p} gets the same number of {o} once more.", "twice as many {o} are there now.",
        "for every one of the {o} {A} gets another.", "{A} now has double the number.",
        "{A} collects as many {o} as {p} has so far.", "{p} is given as many {o} as {p} has.",
        "{A} picks up as many {o} as {p} has in {h} hands.", "{A} receives just as many {o} again.",
        "{A} makes as many {o} as there are already.", "as many {o} as {A} has come on top.",
        "{A} discovers just as many {o} as {p} owns."],
    "grow": [
        "there are {k} times as many {o} now.", "{A} makes {k} times as many {o} out of them.",
        "soon the {o} are {k} times as many."],
    "halve": [
        "{A} loses one half of the {o}.", "{B} gets half of the {o} from {A}.",
        "one half of them goes to {B}.", "{p} keeps only half of the {o}.",
        "{A} throws away half of the {o}.", "half of all {o} break."],
    "part": [
        "{A} loses a {f} of the {o}.", "{B} gets a {f} of them.", "a {f} of them go to {B}.",
        "{p} throws a {f} of the {o} away.", "a {f} of all {o} break."],
    "boxes": [
        "{k} boxes come for {A}, with {m} {o} in each.", "{A} opens {k} boxes of {m} {o} each.",
        "{B} sends {k} bags with {m} {o} in each to {A}.", "{A} is given {k} packs of {m} {o}.",
        "in {k} bags that {A} buys there are {m} {o} each.",
        "{B} leaves {k} boxes, every one with {m} {o}.", "{p} orders {k} packs, {m} {o} in each."],
    "now?": [
        "how many {o} are with {A} now?", "what number of {o} is left with {A}?",
        "how many {o} can {A} count now?", "after all that, how many {o} does {A} have?",
        "how many {o} does {A} own now?", "tell how many {o} {A} has now.",
        "count the {o} of {A}. How many are there?"],
    "share?": [
        "{A} gives them to {k} friends, the same number to each. How many {o} does one get?",
        "{k} bags take all of the {o}, the same number in each. How many {o} are in one bag?",
        "{p} makes {k} equal heaps of them. How many {o} are in one heap?",
        "{k} friends get equal parts of the {o}. How many does one of them get?"],
    "idle": [
        "{A} waits for {n} minutes.", "there are {n} trees in front of the house.",
        "{A} has walked {n} miles.", "the room is {n} feet long.", "the clock has stood still for "
        "{n} days."],

    "base": [
        "{A} bought {n} {o}.", "{A} found {n} {o}.", "in the bag of {A} are {n} {o}.",
        "{A} brought {n} {o}.", "{A} has got {n} {o}.",
        "{A} holds {n} {o}.", "{A} painted {n} {o}.", "{A} could find {n} {o}.",
        "with {n} {o} comes {A}."],
    "more": [
        "{B} has got {n} {o} more than {A}.", "{A} is {n} {o} behind {B}.",
        "{B} leads {A} by {n} {o}.", "{B} owns {n} {o} more than {A} does.",
        "{B} has all that {A} has, and {n} {o} on top.", "{A} would need {n} more to equal {B}.",
        "to have as many as {B}, {A} needs {n} more.", "{B} exceeds {A} by {n}.",
        "{B} is {n} {o} ahead of {A}.", "{A} has {n} fewer than {B}.",
        "next to {A}, {B} has {n} {o} more.", "{B} has more {o} than {A}, by {n}.",
        "{n} {o} is what {B} has beyond {A}."],
    "fewer": [
        "{B} has got {n} {o} fewer than {A}.", "{A} is {n} {o} ahead of {B}.",
        "{A} leads {B} by {n} {o}.", "{B} owns {n} {o} less than {A} does.",
        "{B} lacks {n} {o} to have as many as {A}.", "{B} would need {n} more to equal {A}.",
        "to have as many as {A}, {B} needs {n} more.", "{A} exceeds {B} by {n}.",
        "{A} beats {B} by {n} {o}.", "{A} has {n} more than {B}.",
        "next to {A}, {B} has {n} {o} less.", "{B} has fewer {o} than {A}, by {n}.",
        "{B} has as many as {A} but for {n}."],
    "multiple": [
        "{B} owns {k} times as many {o} as {A}.", "{B} has {k} {o} for each one that {A} has.",
        "the {o} of {B} are {k} times as many as those of {A}.",
        "take {k} times what {A} has, and you get what {B} has."],
    "twice": [
        "{B} owns twice as many {o} as {A}.", "{B} has two {o} for each one that {A} has.",
        "{B} has twice the number of {o} that {A} has.", "the {o} of {B} are double those of {A}.",
        "{B} has double of what {A} has.", "what {A} has, {B} has twice.",
        "double the {o} of {A} and you get those of {B}."],
    "half as": [
        "{B} owns half as many {o} as {A}.", "{A} has twice as many {o} as {B}.",
        "the {o} of {B} are half as many as those of {A}.", "{B} has one half of what {A} has."],
    "all?": [
        "how many {o} is that for all of them?", "count all {o}. How many are there?",
        "how many {o} are theirs in total?", "add up all {o}. How many are there?",
        "how many {o} do these people have in total?"],
    "of?": [
        "how many {o} are those of {A}?", "tell how many {o} {A} has.",
        "how many {o} does {A} own?", "and {A}, how many {o} is that?"],
    "gap?": [
        "by how many {o} does {A} beat {B}?", "how many {o} is {A} ahead of {B}?",
        "how many more {o} than {B} has {A} got?", "by how much does {A} exceed {B}?"],

    "buy": [
        "{A} orders {n} {o} at {c} {u} each.", "a {s} is {c} {u}, and {A} wants {n}.",
        "the price of a {s} is {c} {u}. {A} buys {n} of them.",
        "{A} puts {n} {o} into the basket, {c} {u} each.",
        "for each of {n} {o} {A} pays {c} {u}.", "{A} needs {n} {o}, and one is {c} {u}.",
        "one {s} is {c} {u}, and {A} gets {n}.", "a {s} costs {c} {u}. {A} takes {n} of them.",
        "one {s} comes at {c} {u}, and {A} buys {n} of them.",
        "{A} takes {n} {o} at {c} {u} a piece."],
    "buy more": [
        "{n} {o} at {c} {u} each come on top.", "{p} takes another {n} {o} for {c} {u} each.",
        "then {A} buys {n} {o} at {c} {u} each.", "{n} {o} are bought too, each for {c} {u}.",
        "{p} orders {n} {o} as well, {c} {u} each."],
    "buy one": [
        "{p} takes one {s} for {c} {u} too.", "a {s} is bought as well, for {c} {u}.",
        "then {A} buys a {s} at {c} {u}.", "{p} spends {c} {u} on a {s}."],
    "discount": [
        "the seller takes {n} {u} off.", "{A} saves {n} {u} with a card.",
        "today everything together is {n} {u} cheaper.", "{n} {u} are taken off the price.",
        "the sum goes down by {n} {u}.", "the total falls by {n} {u}.",
        "the bill is {n} {u} lower than that.", "the whole price drops by {n} {u}.",
        "the seller lowers the total by {n} {u}.", "from the total {n} {u} are taken off.",
        "there is a discount of {n} {u} on the total.", "{n} {u} less are asked for all of it."],
    "cost?": [
        "how many {u} is that in all?", "what must {A} pay in {u}?",
        "how many {u} does all of it cost?", "how much money does {A} spend?",
        "find the price of everything in {u}."],
    "pays": [
        "{A} came with {n} {u}.", "{p} puts {n} {u} on the table.", "{A} hands over {n} {u}.",
        "the purse of {A} held {n} {u}.", "{p} had {n} {u} before."],
    "change?": [
        "how many {u} remain?", "how many {u} does {A} keep?",
        "what is the change in {u}?", "how many {u} does the seller give back?",
        "how many {u} does {p} still have?"],
    "split?": [
        "{k} people pay equal parts of it. How many {u} is one part?",
        "{k} friends divide the price equally. How many {u} does one pay?",
        "it is paid by {k} friends in equal parts. How many {u} does each give?"],

    "rate": [
        "{A} builds {n} {o} a day.", "in one day {A} makes {n} {o}.", "{A} paints {n} {o} per day.",
        "{n} {o} are made by {A} every day.", "{A} manages {n} {o} a day.",
        "day by day {A} packs {n} {o}.", "{A} repairs {n} {o} each day."],
    "helper": [
        "{B} helps and makes {n} {o} a day.", "another {n} {o} a day come from {B}.",
        "{B} adds {n} {o} every day.", "{n} {o} a day are made by {B}."],
    "days": [
        "{A} works {k} days.", "it goes on like this for {k} days.", "that lasts {k} days.",
        "after {k} days the work stops.", "{p} keeps this up for {k} days."],
    "ready": [
        "{n} {o} are there from before.", "{n} {o} had been done earlier.",
        "{A} has {n} {o} from last week.", "{n} {o} stand ready."],
    "spoilt": [
        "{n} of all the {o} are broken.", "{n} of these {o} get lost.",
        "{A} gives away {n} of the {o}.", "{n} of them are taken away."],
    "goal": [
        "{A} has to make {n} {o}.", "somebody has ordered {n} {o}.", "{n} {o} are needed.",
        "{A} must have {n} {o} in the end.", "there should be {n} {o} at last."],
    "days?": [
        "how many days of work is that?", "how many days will {A} work?",
        "in how many days is it done?", "how many days pass until then?"],
    "rest?": [
        "how many {o} are there still?", "how many {o} does that leave?",
        "how many {o} stay?", "find the number of {o} that remain."],
    "total?": [
        "how many {o} are made in all?", "how many {o} are there now?",
        "count all of the {o}. How many are there?"],

    "wage": [
        "one hour of work brings {A} {n} {u}.", "{A} makes {n} {u} per hour.",
        "{A} takes {n} {u} for an hour of work.", "an hour is worth {n} {u} to {A}.",
        "{A} works for {n} {u} an hour.", "{A} is paid by the hour and gets {n} {u} each time.",
        "{A} has a job that pays {n} {u} an hour.", "{A} is given {n} {u} for every hour.",
        "for one hour {A} is paid {n} {u}.", "each hour of {A} costs {n} {u}.",
        "{A} receives {n} {u} after each hour."],
    "hours": [
        "{A} works for {k} hours.", "{p} is at work for {k} hours.", "it takes {k} hours.",
        "after {k} hours {p} stops."],
    "spend": [
        "{p} buys a book for {n} {u}.", "{n} {u} go to a friend.", "{A} loses {n} {u}.",
        "{p} pays {n} {u} for the room.", "a meal costs {A} {n} {u}."],
    "saved": [
        "{p} has {n} {u} from before.", "{A} kept {n} {u} from last week.",
        "at home {A} has {n} {u}.", "{n} {u} are in the bank."],
    "money?": [
        "how many {u} are there in the end?", "how many {u} does {A} own now?",
        "count the {u} of {A}. How many are there?", "how many {u} does {A} keep?"],

    "packed": [
        "{k} boxes of {n} {o} stand there.", "{A} carries {k} bags with {n} {o} in each.",
        "each of {k} boxes holds {n} {o}.", "{n} {o} are in each of {k} bags.",
        "{A} has packed {k} boxes, each with {n} {o}.",
        "there stand {k} bags, and in one there are {n} {o}.",
        "{A} owns {k} boxes of {n} {o} each.",
        "{A} sees {k} shelves with {n} {o} on one.", "{k} bags are full, with {n} {o} in each.",
        "there are {k} shelves of {n} {o} each."],
    "damaged": [
        "{n} of them are lost.", "{A} gives away {n} of the {o}.", "{n} of the {o} break.",
        "a dog takes {n} of the {o}.", "{n} {o} cannot be found.",
        "{A} sees that {n} {o} are gone.", "{A} notices that {n} of the {o} are broken.",
        "it turns out that {n} {o} have been lost.", "{A} hears that {n} of them were stolen.",
        "{A} finds {n} of the {o} broken and drops them.", "{A} misses {n} {o}.",
        "{A} looks for {n} {o} and does not find them.", "somebody says that {n} {o} are gone.",
        "{A} finds out that {n} of them have been taken.", "as {A} sees, {n} {o} are not there."],
    "loose": [
        "{n} {o} come on top.", "{A} brings {n} more {o}.", "{n} {o} without a box are there too.",
        "then {n} {o} are put to them.", "{A} finds that {n} more {o} are there.",
        "{A} sees that there are {n} {o} more.", "it turns out that {n} {o} were forgotten, and "
        "they come on top.", "{A} finds {n} more {o} under the table.",
        "loose ones, {n} in all, are put to the {o}."],
    "repack?": [
        "{A} fills bags with {k} {o} each. How many bags is that?",
        "one bag takes {k} {o}. How many bags does {A} need for all?",
        "all {o} go into bags of {k}. How many bags does that make?"],

    "rows": [
        "{l} has {n} rows of {m} seats.", "somebody puts {n} rows of {m} seats into {l}.",
        "each of the {n} rows in {l} has {m} seats.", "one sees {n} rows of {m} seats in {l}."],
    "taken": [
        "{n} people take their seats.", "{n} seats are sold.", "people sit on {n} seats.",
        "{n} people are sitting there."],
    "more come": [
        "{n} people come later and sit down.", "{n} more seats are taken.",
        "after that {n} people find a seat."],
    "leave": [
        "{n} people go out.", "{n} of the people leave early.", "later {n} people go away."],
    "free?": [
        "how many seats has nobody taken?", "how many seats are left?", "on how many seats does "
        "nobody sit?"],
    "seats?": [
        "how many people have a seat now?", "on how many seats do people sit now?"],

    "age": [
        "{A} has lived for {n} years.", "{n} is the age of {A}.", "{A} is a person of {n} years.",
        "at the moment {A} is {n} years old.", "{A} was born {n} years ago.",
        "this year {A} turned {n}.", "{A} is {n} this year.", "{A} is {n} now.",
        "{A} is just {n}.", "{A} is {n} at the moment.", "by now {A} is {n}.", "now {A} is {n}."],
    "older": [
        "{A} was born {n} years after {B}.", "{B} is {n} years ahead of {A} in age.",
        "{B} has lived {n} years longer than {A}.", "when {A} was born, {B} was {n} years old.",
        "the age of {B} is {n} more than the age of {A}.", "{n} years before {A}, {B} was born.",
        "{B} is by {n} years older than {A}.", "by {n} years {B} is older than {A}.",
        "{B} is older by {n} years than {A}.", "{B} is older than {A}, {n} years in all.",
        "{B} is ahead of {A} by {n} years.", "{A} is by {n} years younger than {B}.",
        "{A} is younger by {n} years than {B}.",
        "add {n} years to {A} and you get the age of {B}."],
    "younger": [
        "{A} was born {n} years before {B}.", "{A} is {n} years ahead of {B} in age.",
        "{A} has lived {n} years longer than {B}.", "when {B} was born, {A} was {n} years old.",
        "the age of {B} is {n} less than the age of {A}.", "{n} years after {A}, {B} was born.",
        "{B} is by {n} years younger than {A}.", "by {n} years {B} is younger than {A}.",
        "{B} is younger by {n} years than {A}.", "{B} is younger than {A}, {n} years in all.",
        "{B} is behind {A} by {n} years.", "{A} is by {n} years older than {B}.",
        "{A} is older by {n} years than {B}.", "take {n} years off {A} and you get the age of "
        "{B}."],
    "times as old": [
        "{B} has lived {k} times as long as {A}.", "{k} times the age of {A} is the age of {B}.",
        "take the age of {A} {k} times, and you get the age of {B}."],
    "age in?": [
        "after {n} more years, how old is {A}?", "what is the age of {A} in {n} years?",
        "{n} years pass. How old is {A} then?"],
    "age ago?": [
        "what was the age of {A} before {n} years?", "go back {n} years. How old was {A} then?"],
    "age sum?": [
        "what is the total of their ages?", "add up all ages. What do you get?",
        "how many years old are they in all?", "what do all of the ages make together?",
        "to what number do their ages sum up?", "if you add their ages, what is the result?",
        "taken together, how many years have they lived?"],

    "length": [
        "{A} has a book with {n} pages.", "a book of {n} pages lies before {A}.",
        "the new book of {A} is {n} pages long.", "{A} wants to read a book of {n} pages."],
    "pages": [
        "{A} reads for {k} days, {m} pages a day.",
        "{m} pages a day are read by {A}, for {k} days.",
        "on each of {k} days {A} reads {m} pages.", "{p} does {m} pages a day, {k} days long."],
    "more pages": [
        "{A} reads {n} pages on top.", "one night {p} reads another {n} pages.",
        "{n} more pages follow."],
    "pages left?": [
        "how many pages has {A} not read yet?", "how many pages does that leave?",
        "how many pages are there still to read?"],
    "trip": [
        "{A} goes {m} miles a day for {k} days.", "on each of {k} days {A} walks {m} miles.",
        "{A} travels for {k} days, {m} miles a day.", "{k} days long {A} runs {m} miles a day."],
    "trip more": [
        "after that {A} walks {n} miles.", "{n} more miles follow by train.",
        "{p} adds another {n} miles."],
    "trip back": [
        "{A} has to go {n} miles in all.", "it is a way of {n} miles.",
        "the sea is {n} miles off."],
    "miles?": [
        "how many miles are behind {A} now?", "how many miles has {A} gone?",
        "add up the miles. How many are there?"],
    "miles left?": [
        "how many miles lie before {A}?", "how many miles are still to go?",
        "how many miles does that leave?"],

    "kinds": [
        "one finds {n} {o} in {l}.", "{A} brings {n} {o} to {l}.", "{n} {o} are in {l}.",
        "someone left {n} {o} in {l}."],
    "colour": [
        "{n} of the {o} are {x}.", "one sees {n} {x} {o}.", "{x} is the colour of {n} of them.",
        "there are {n} {x} ones."],
    "other colour": [
        "{x} is the colour of {n} others.", "{n} further {o} are {x}.",
        "then there are {n} {x} ones."],
    "colour rest?": [
        "{x} is the colour of the rest. How many {o} are {x}?",
        "what is left is {x}. How many {x} {o} is that?",
        "the others are {x}. How many {o} are {x}?"],
    "rest boxed?": [
        "the others are {x} and go into {k} boxes, the same number in each. How many are in one?",
        "{k} people share the rest, which are {x}. How many does each of them get?"],
    "recipe": [
        "a cake takes {m} {o}.", "{m} {o} go into one cake.", "to bake one cake {A} takes {m} {o}.",
        "with {m} {o} {A} can bake one cake.", "a cake of {A} has {m} {o} in it.",
        "{A} puts {m} {o} into each cake.", "{A} takes {m} {o} a cake."],
    "bake": [
        "{A} has baked {k} cakes.", "{k} cakes come out of the oven.", "{A} bakes {k} such cakes.",
        "with them {A} makes {k} cakes.", "{A} wants to eat {k} cakes and bakes them.",
        "{p} wants {k} cakes and "
        "bakes them."],
    "cakes?": [
        "for how many cakes is the rest enough?", "how many more cakes can {A} bake?",
        "how many cakes do the others make?"],
}
