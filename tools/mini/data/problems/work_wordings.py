"""Wordings of buying, working, packing, seats, ages and journeys; see wordings.py."""
from .wordings import WORDINGS

WORDINGS.update({
    "buy": ([
        "{A} buys {n} {o} for {c} {u} each.", "{A} buys {n} {o} at {c} {u} each.",
        "{A} buys {n} {o}, each for {c} {u}.", "{A} gets {n} {o}, and each costs {c} {u}.",
        "one {s} costs {c} {u}, and {A} buys {n}.",
        "{n} {o} at {c} {u} each are on the list of {A}.",
        "{A} pays for {n} {o} that cost {c} {u} each.", "each {s} costs {c} {u}. {A} takes {n}."],
        ["one {s} costs {c} {u}, and {A} takes {n} of them.", "{A} gets {n} {o} at {c} {u} each."]),
    "buy more": ([
        "{p} also buys {n} {o} for {c} {u} each.", "{p} also gets {n} {o} at {c} {u} each.",
        "there are also {n} {o}, each for {c} {u}.", "{A} adds {n} {o} at {c} {u} each.",
        "{p} takes {n} {o} too, and each costs {c} {u}."],
        ["{p} also takes {n} {o} for {c} {u} each.",
         "{A} also pays for {n} {o} that cost {c} {u} each."]),
    "buy one": ([
        "{p} also buys a {s} for {c} {u}.", "{A} pays {c} {u} for a {s} too.",
        "a {s} for {c} {u} comes on top.", "{p} adds one {s}, which costs {c} {u}."],
        ["{p} also pays {c} {u} for a {s}."]),
    "discount": ([
        "{A} has a coupon for {n} {u} off.", "the shop takes {n} {u} off the total.",
        "{p} gets {n} {u} off.", "the price is then cut by {n} {u}."],
        ["the total is cut by {n} {u}."]),
    "cost?": ([
        "how much does {A} pay?", "how many {u} does {A} spend in total?",
        "what does {A} pay in all?", "how many {u} does {p} need?",
        "what is the total price in {u}?"],
        ["how many {u} does {p} pay in all?"]),
    "pays": ([
        "{A} pays with {n} {u}.", "{A} had {n} {u}.", "{A} gives the seller {n} {u}.",
        "there were {n} {u} in {h} purse."],
        ["{A} had {n} {u} in {h} purse."]),
    "change?": ([
        "how many {u} does {p} get back?", "how many {u} are left?",
        "how much change does {A} get?",
        "how much money does {A} have left?", "how many {u} does {A} have after that?"],
        ["how much money does {A} get back?"]),
    "split?": ([
        "{k} friends share the cost equally. How many {u} does each pay?",
        "the price is shared by {k} people. How many {u} does each of them pay?",
        "{A} and some friends, {k} people in all, pay equal parts. How much is one part?"],
        ["{k} people share the price equally. How many {u} does each pay?"]),

    "rate": ([
        "{A} makes {n} {o} a day.", "{A} makes {n} {o} every day.", "each day {A} makes {n} {o}.",
        "a worker called {A} packs {n} {o} per day.", "{A} sells {n} {o} every day.",
        "{A} can finish {n} {o} a day.", "every day {A} paints {n} {o}.",
        "{n} {o} a day is what {A} makes."],
        ["each day {A} sells {n} {o}.", "{A} can make {n} {o} per day."]),
    "helper": ([
        "{B} makes {n} {o} a day.", "{B} makes {n} every day.", "with the help of {B}, who makes "
        "{n} {o} a day, it goes faster."], ["each day {B} makes {n} {o} too."]),
    "days": ([
        "{p} does this for {k} days.", "{p} works for {k} days.", "this goes on for {k} days.",
        "{A} keeps going for {k} days."],
        ["for {k} days {A} goes on like this.", "the work goes on for {k} days."]),
    "ready": ([
        "{n} {o} are already done.", "{p} already has {n} {o}.", "{A} started with {n} {o}.",
        "there were {n} {o} before."],
        ["{n} {o} were already there."]),
    "spoilt": ([
        "{n} of the {o} are not good and are thrown away.", "{n} of all these {o} are sold.",
        "{p} keeps {n} of the {o} apart for a friend and sells the rest."],
        ["{n} of all these {o} are thrown away."]),
    "goal": ([
        "{A} needs {n} {o}.", "{A} wants {n} {o} in all.", "the goal of {A} is {n} {o}.",
        "{A} has promised {n} {o}."],
        ["{A} needs {n} {o} in all."]),
    "days?": ([
        "how many days does {A} need?", "how many days does it take?",
        "for how many days must {A} work?", "after how many days is the work done?"],
        ["how many days must {A} work?"]),
    "rest?": ([
        "how many {o} are left?", "how many {o} are there in the end?", "how many {o} remain?"],
        ["how many {o} remain in the end?"]),
    "total?": ([
        "how many {o} is that in all?", "how many {o} are there in total?",
        "what is the total number of {o}?", "how many {o} does that make?"],
        ["how many {o} does that make in total?"]),

    "wage": ([
        "{A} earns {n} {u} an hour.", "{A} gets {n} {u} for each hour of work.",
        "for every hour {A} is paid {n} {u}.", "the pay of {A} is {n} {u} per hour."],
        ["{A} is paid {n} {u} for each hour."]),
    "hours": ([
        "{p} works {k} hours.", "{p} works for {k} hours.", "this week {A} works {k} hours.",
        "{A} has worked {k} hours."],
        ["{A} works for {k} hours this week."]),
    "spend": ([
        "{p} spends {n} {u} on food.", "{p} pays {n} {u} for a coat.",
        "{n} {u} go to the landlord.",
        "{A} gives {n} {u} to {h} mother.", "{p} spends {n} {u}."],
        ["{A} pays {n} {u} for food."]),
    "saved": ([
        "{p} has already saved {n} {u}.", "there are {n} {u} in {h} savings.",
        "{A} had {n} {u} before."],
        ["{A} already has {n} {u} in {h} savings."]),
    "money?": ([
        "how many {u} does {A} have now?", "how much money does {A} have in the end?",
        "how many {u} are left?", "how much money is that?"],
        ["how many {u} does {p} have in the end?"]),

    "packed": ([
        "there are {k} boxes with {n} {o} in each.", "{A} has {k} boxes of {n} {o} each.",
        "{k} bags hold {n} {o} each.", "a cart carries {k} boxes, and in each there are {n} {o}.",
        "{A} fills {k} boxes with {n} {o} each.", "on each of {k} shelves there are {n} {o}."],
        ["there are {k} bags, and in each there are {n} "
         "{o}.", "{A} has {k} shelves with {n} {o} on each."]),
    "damaged": ([
        "{n} of the {o} are broken and cannot be used.", "{n} {o} are missing.",
        "{A} takes out {n} {o}.", "{n} {o} are sold at once."],
        ["{A} finds that {n} {o} are missing."]),
    "loose": ([
        "{n} more {o} lie on the table.", "there are also {n} loose {o}.",
        "another {n} {o} are added."],
        ["{n} loose {o} are added."]),
    "repack?": ([
        "the {o} are put into bags of {k}. How many bags are there?",
        "{A} packs them into bags with {k} {o} each. How many bags does {A} fill?",
        "{k} {o} go into each new bag. How many bags are needed?"],
        ["{A} puts them into bags with {k} {o} each. How many bags are needed?"]),

    "rows": ([
        "a hall has {n} rows with {m} seats each.", "there are {n} rows of {m} seats in {l}.",
        "in {l} there are {n} rows, and each row has {m} seats.",
        "{n} rows with {m} seats each stand in {l}."],
        ["in {l} stand {n} rows of {m} seats each."]),
    "taken": ([
        "{n} seats are taken.", "{n} people sit down.", "{n} of the seats are already sold.",
        "{n} people have come.", "{n} guests take a seat."],
        ["{n} of the seats are taken.", "{n} guests sit down."]),
    "more come": ([
        "then {n} more people come and sit down.", "another {n} people take a seat.",
        "{n} more guests come in."], ["then another {n} guests come in."]),
    "leave": ([
        "{n} of them leave.", "then {n} people go home.", "{n} people stand up and leave."],
        ["then {n} guests go home."]),
    "free?": ([
        "how many seats are free?", "how many seats are still free?",
        "how many seats are empty now?"],
        ["how many seats are still empty?"]),
    "seats?": ([
        "how many people are sitting now?", "how many seats are taken now?"],
        ["how many people sit there now?"]),

    "age": ([
        "{A} is {n} years old.", "the age of {A} is {n}.", "{A} has just turned {n}.",
        "today {A} is {n} years old."],
        ["{A} is {n} today."]),
    "older": ([
        "{B} is {n} years older than {A}.", "{B} was born {n} years before {A}.",
        "{A} is {n} years younger than {B}."],
        ["{B} is older than {A} by {n} years."]),
    "younger": ([
        "{B} is {n} years younger than {A}.", "{B} was born {n} years after {A}.",
        "{A} is {n} years older than {B}."],
        ["{B} is younger than {A} by {n} years."]),
    "times as old": ([
        "{B} is {k} times as old as {A}.", "the age of {B} is {k} times the age of {A}."],
        ["{B} is as old as {A} {k} times over."]),
    "age in?": ([
        "how old will {A} be in {n} years?", "how old is {A} {n} years from now?",
        "what will the age of {A} be after {n} years?"],
        ["in {n} years, how old will {A} be?"]),
    "age ago?": ([
        "how old was {A} {n} years ago?", "what was the age of {A} {n} years ago?"],
        ["{n} years ago, how old was {A}?"]),
    "age sum?": ([
        "how old are they together?", "what is the sum of their ages?"],
        ["what do their ages add up to?"]),

    "length": ([
        "{A} reads a book of {n} pages.", "the book of {A} has {n} pages.",
        "{A} starts a book with {n} pages.", "there are {n} pages in the book that {A} reads."],
        ["{A} starts to read a book of {n} pages."]),
    "pages": ([
        "{p} reads {m} pages a day for {k} days.", "for {k} days {A} reads {m} pages every day.",
        "each day {A} reads {m} pages, {k} days long."],
        ["{A} reads {m} pages every day for {k} days."]),
    "more pages": ([
        "on the last day {p} reads {n} pages.", "{p} reads {n} more pages at night.",
        "then {A} reads another {n} pages."], ["at night {A} reads another {n} pages."]),
    "pages left?": ([
        "how many pages are left?", "how many pages does {A} still have to read?",
        "how many pages remain?"], ["how many pages does {A} have left?"]),

    "trip": ([
        "{A} walks {m} miles a day for {k} days.", "{A} rides {m} miles every day for {k} days.",
        "for {k} days {A} drives {m} miles a day.", "each day {A} walks {m} miles, {k} days long."],
        ["for {k} days {A} rides {m} miles every day."]),
    "trip more": ([
        "after that {p} goes {n} miles by bus.", "then {A} goes another {n} miles.",
        "{p} goes {n} miles more on the last day."],
        ["on the last day {A} goes another {n} miles."]),
    "trip back": ([
        "{p} has planned {n} miles in all.", "the whole way is {n} miles long.",
        "the town is {n} miles away."], ["the way to the town is {n} miles long."]),
    "miles?": ([
        "how many miles does {A} go in all?", "how many miles is that in total?",
        "how far does {A} go?"], ["how many miles does {A} go in total?"]),
    "miles left?": ([
        "how many miles are left?", "how many miles does {A} still have to go?"],
        ["how many miles remain for {A}?"]),

    "kinds": ([
        "there are {n} {o} in {l}.", "{A} counts {n} {o} in {l}.", "{A} has {n} {o}.",
        "in {l} there are {n} {o}."], ["{A} sees {n} {o} in {l}."]),
    "colour": ([
        "{n} of them are {x}.", "{n} {o} are {x}.", "of these, {n} are {x}."],
        ["{n} of these {o} are {x}."]),
    "other colour": ([
        "{n} are {x}.", "{n} others are {x}.", "another {n} are {x}."], ["{n} more are {x}."]),
    "colour rest?": ([
        "the rest are {x}. How many {x} {o} are "
        "there?", "all others are {x}. How many {o} are {x}?",
        "how many {o} are {x}, if all the rest are?"],
        ["all the rest are {x}. How many {x} {o} are there?"]),
    "rest boxed?": ([
        "the rest are {x} and are put into {k} boxes, the same number in each. How many are in "
        "one box?",
        "the rest are {x}. They are divided into {k} equal groups. How many are in each group?"],
        ["the rest are {x} and are divided equally among {k} people. How many does each get?"]),

    "recipe": ([
        "one cake needs {m} {o}.", "for each cake {A} needs {m} {o}.",
        "{A} uses {m} {o} for one cake.",
        "each cake takes {m} {o}."], ["{A} needs {m} {o} for one cake."]),
    "bake": ([
        "{A} bakes {k} cakes.", "{p} makes {k} cakes.", "{k} cakes are baked."],
        ["{A} makes {k} of these cakes."]),
    "cakes?": ([
        "how many cakes can {A} make with the "
        "rest?", "how many cakes can be made from what is left?"],
        ["how many cakes can {p} make from the rest?"]),
})
