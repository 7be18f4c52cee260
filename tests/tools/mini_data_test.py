#!/usr/bin/env python3
"""winnow-mini's generators: seeds, splits, worked answers, held-out files."""
import itertools
import json
import pathlib
import random
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/mini"))
import heldout_items  # noqa: E402
from data import (SKILLS, choices_worlds, needle, needle_frames, pools,  # noqa: E402
                  quoted, sample, talk_lines, tools)
from data.problems import make_problem  # noqa: E402
from data.problems.more_wordings import MORE, MORE_OPENERS  # noqa: E402
from data.problems.wordings import HELDOUT_OPENERS, OPENERS, WORDINGS  # noqa: E402

# A number that a story says in words.
SAID = {2: r"\b(half|twice|double|doubles|as many|two|once more|another)\b",
        3: r"\bthird\b", 4: r"\bquarter\b",
        5: r"\bfifth\b"}

SPLITS = ("train", "heldout")


def all_text(item):
    parts = [item.text] + [json.dumps(message, ensure_ascii=False) for message in item.messages]
    return "\n".join(parts)


def bare(wording):
    """A wording without its names: people, numbers and things are all alike."""
    for names, plain in (("ABCp", "X"), ("nkmc", "9"), ("osx", "T")):
        wording = re.sub(rf"{{[{names}]}}", plain, wording)
    return wording.lower()


def problems(split, count, seed=7):
    rng = random.Random(seed)
    return [make_problem(rng, split) for _ in range(count)]


class Seeds(unittest.TestCase):
    def test_the_same_seed_gives_the_same_examples(self):
        for skill in SKILLS:
            for split in ("train", "heldout"):
                first, second, other = ([sample(skill, random.Random(seed),
                                                split) for _ in range(5)]
                                        for seed in (1, 1, 2))
                self.assertEqual(first, second, skill)
                self.assertNotEqual(first, other, skill)

    def test_an_unknown_split_is_refused(self):
        with self.assertRaises(ValueError):
            sample("drill", random.Random(1), "test")


class Splits(unittest.TestCase):
    def test_written_pools_do_not_meet(self):
        for pool in (pools.SHE, pools.HE, pools.COLOURS, pools.PLACES, pools.THINGS):
            self.assertFalse(set(pool["train"]) & set(pool["heldout"]))
        self.assertFalse(set(OPENERS) & set(HELDOUT_OPENERS))
        for kind, (known, unseen) in {**WORDINGS, **{k: v[:2] for k,
                                                     v in talk_lines.INTENTS.items()}}.items():
            self.assertTrue(known and unseen, kind)
            self.assertFalse(set(known) & set(unseen), kind)

    def test_held_out_wordings_are_not_those_of_training_with_another_name(self):
        known = {bare(wording) for pool, _ in WORDINGS.values() for wording in pool}
        known |= {bare(wording) for pool in MORE.values() for wording in pool}
        self.assertEqual(set(MORE), set(WORDINGS))
        for kind, (_, unseen) in WORDINGS.items():
            self.assertFalse(known & set(map(bare, unseen)), kind)
        self.assertFalse(set(MORE_OPENERS) & set(HELDOUT_OPENERS))

    def test_training_alone_words_facts_and_requests_unlike_held_out_items(self):
        for kind, relations in choices_worlds.RELATIONS.items():
            for name, relation in relations.items():
                known = [relation.plain, relation.back, *relation.known, *relation.more]
                self.assertTrue(relation.more, name)
                self.assertFalse(set(map(str.lower, known)) & set(map(str.lower, relation.unseen)),
                                 f"{kind} {name}")
        for form, spec in needle.FORMS.items():
            for key, more in (("said", needle.MORE_SAID), ("asked", needle.MORE_ASKED)):
                known, unseen = spec[key]
                self.assertFalse((set(known) | set(more[form])) & set(unseen), form)
        self.assertFalse(set(needle.MORE_ASKS + needle.ASKS["train"])
                         & (set(needle.ASKS["heldout"]) - {"\n\n{}"}))
        for pool in (tools.JOINTS, tools.TWO):
            self.assertFalse(set(pool["train"]) & set(pool["heldout"]))

    def test_no_request_of_training_is_worded_like_a_held_out_one(self):
        patterns = [re.escape(text).replace(r"\{\}", "(.+)") for text in tools.REQUESTS["heldout"]]
        unseen = re.compile("|".join(patterns), re.I)
        rng = random.Random(8)
        frames = {tools._request_frame(rng) for _ in range(3000)}
        self.assertGreater(len(frames), 1200)
        for frame in frames:
            self.assertIsNone(unseen.fullmatch(frame.replace("{}", "open a door")), frame)

    def test_held_out_names_and_things_never_occur_in_training(self):
        unseen = [*pools.SHE["heldout"], *pools.HE["heldout"]]
        unseen += [word for pair in pools.THINGS["heldout"] for word in pair]
        pattern = re.compile(rf"\b({'|'.join(unseen)})\b")
        rng = random.Random(3)
        for skill in SKILLS:
            for _ in range(150):
                found = pattern.search(all_text(sample(skill, rng, "train")))
                # "ring" and "fig" may be parts of made-up words, but never stand alone.
                self.assertIsNone(found, f"{skill}: {found}")

    def test_made_up_words_and_numbers_belong_to_one_split(self):
        rng = random.Random(4)
        words = {split: {pools.made_up(rng, split) for _ in range(4000)} for split in SPLITS}
        self.assertFalse(words["train"] & words["heldout"])
        codes = {"train": set(), "heldout": set()}
        for split, found in codes.items():
            for _ in range(300):
                item = sample("needle", rng, split, tokens=256)
                if item.kind.startswith("needle/code"):
                    found.update(item.answer)
        self.assertTrue(codes["train"] and codes["heldout"])
        self.assertFalse(codes["train"] & codes["heldout"])

    def test_words_made_alike_stay_different_and_of_training(self):
        rng = random.Random(11)
        shared = 0
        for _ in range(40):
            words = list({pools.coined(rng).capitalize() for _ in range(12)})
            made = pools.alike(rng, words)
            self.assertEqual(len(set(made)), len(words))
            self.assertTrue(all(pools.split_of(word) == "train" for word in made))
            shared += len({word[:1] for word in made}) <= len({word[:1] for word in words}) - 3
        self.assertGreater(shared, 24)

    def test_composed_facts_are_told_in_both_orders_and_never_like_held_out_ones(self):
        rng = random.Random(12)
        for form, spec in needle.FORMS.items():
            unseen = [re.escape(text[0].lower() + text[1:-1]) for text in spec["said"][1]]
            unseen = re.compile("|".join(unseen))
            told = [needle_frames.frame(rng, form) for _ in range(3000)]
            for text in told:
                self.assertEqual((text.count("{K}"), text.count("{V}")), (1, 1), text)
                self.assertIsNone(unseen.search(text[0].lower() + text[1:]), text)
                self.assertIsNone(re.search(r"\{[^KV]", text), text)
            first = sum(text.index("{V}") < text.index("{K}") for text in told)
            self.assertTrue(0.5 < first / len(told) < 0.72, f"{form} {first}")
            self.assertGreater(len(set(told)), 300, form)
            orders = [text.index("{V}") < text.index("{K}")
                      for text in needle_frames.both_orders(rng, form)]
            self.assertEqual(orders, [True, False], form)
        for _ in range(300):
            text = needle_frames.coined(rng, "toral")
            self.assertEqual((text.count("{K}"), text.count("{V}")), (1, 1), text)

    def test_a_town_of_training_never_stands_before_what_one_can_find(self):
        rng = random.Random(13)
        for _ in range(60):
            item = sample("needle", rng, "train", tokens=1024, facts=1, distractors=20)
            self.assertNotRegex(item.messages[0]["content"], r"(?i)\bin \w+,? you can find")

    def test_quoted_texts_are_of_many_kinds_and_titles_belong_to_training(self):
        rng = random.Random(14)
        self.assertGreater(len({quoted.sentence(rng) for _ in range(500)}), 450)
        for _ in range(300):
            self.assertEqual(pools.split_of(quoted.title(rng)), "train")
            listed = quoted.names(rng)
            self.assertTrue(2 <= len(listed) == len(set(listed)) <= 6, listed)

    def test_every_held_out_problem_has_a_wording_that_training_lacks(self):
        patterns = [re.sub(r"\\{\w\\}", r"[\\w ]+?", re.escape(wording))
                    for _, unseen in WORDINGS.values() for wording in unseen]
        openers = "|".join(re.escape(opener) for opener in OPENERS + HELDOUT_OPENERS)
        unseen = re.compile(rf"(?:^|(?<=[.?] ))(?:(?:{openers}) )?(?:{'|'.join(patterns)})(?= |$)",
                            re.I)
        for problem in problems("heldout", 300):
            self.assertRegex(problem.question.replace(" an ", " a "), unseen)

    def test_training_has_many_templates(self):
        def template(problem):
            return re.sub(r"\d+", "0", re.sub(r"\b[A-Z]\w+", "N", problem.question))
        self.assertGreater(len({template(problem) for problem in problems("train", 2000)}), 1900)


class Answers(unittest.TestCase):
    def check_steps(self, problem):
        """Every equation holds, and every operand was told or found before."""
        known = {int(number) for number in re.findall(r"\d+", problem.question)}
        known |= {number for number, said in SAID.items()
                  if re.search(said, problem.question, re.I)}
        for _, equation, _ in problem.steps:
            terms = equation.split(" = ")
            values = {eval(term) for term in terms}  # of numbers and + - * / only
            self.assertEqual(len(values), 1, equation)
            operands = {int(number) for number in re.findall(r"\d+", terms[0])}
            self.assertLessEqual(operands, known, f"{equation}: {problem.question}")
            known.add(int(terms[-1]))
        self.assertEqual(int(terms[-1]), problem.answer)
        self.assertRegex(problem.worked(), rf"\n#### {problem.answer}$")
        self.assertTrue(0 < problem.answer < 10_000)

    def test_worked_answers_are_right(self):
        for split, count in (("train", 3000), ("heldout", 300)):
            for problem in problems(split, count):
                self.check_steps(problem)

    def test_choices(self):
        rng = random.Random(5)
        letters = {}
        for _ in range(2000):
            item = sample("choices", rng, "train")
            options = item.choice["options"]
            self.assertEqual(len(set(options)), 4)
            letters[item.answer] = letters.get(item.answer, 0) + 1
            said = item.messages[-1].get("reasoning_content") or item.messages[-1]["content"]
            self.assertIn(f"The right option is {options['ABCD'.index(item.answer)]}.", said)
            self.assertTrue(item.messages[-1]["content"].endswith(f"Answer: {item.answer}"))
        self.assertTrue(all(430 < letters[letter] < 570 for letter in "ABCD"), letters)

    def test_needles(self):
        rng = random.Random(6)
        for facts in (1, 2, 3):
            item = sample("needle", rng, "heldout", tokens=2048, facts=facts, distractors=20)
            text = item.messages[-2]["content"]
            self.assertEqual(len(item.answer), facts)
            for value in item.answer:
                self.assertIn(value, text)
                self.assertIn(value, item.messages[-1]["content"])

    def test_tool_calls_fit_their_schemas_and_their_request(self):
        types = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
                 "object": dict, "array": list}
        rng = random.Random(7)
        for _ in range(400):
            item = sample("tools", rng, "train", kind="call")
            functions = [tool["function"] for tool in item.tools]
            schemas = {function["name"]: function["parameters"] for function in functions}
            request = item.messages[-2]["content"]
            for call in item.answer:
                schema = schemas[call["name"]]
                self.assertLessEqual(set(schema["required"]), set(call["arguments"]))
                for key, value in call["arguments"].items():
                    self.assertIsInstance(value, types[schema["properties"][key]["type"]])
                    if isinstance(value, (dict, bool)):
                        continue
                    for part in re.findall(r"[\w.]+", json.dumps(value)):
                        self.assertIn(part, request)


class HeldOutFiles(unittest.TestCase):
    def test_files_are_what_the_generators_make(self):
        for skill in heldout_items.SKILLS:
            stored = heldout_items.path(skill).read_text(encoding="utf-8").splitlines(keepends=True)
            self.assertEqual(len(stored), heldout_items.COUNT, skill)
            if skill == "needle":  # long texts: two of each length
                lengths = heldout_items.NEEDLE_TOKENS
                each = heldout_items.COUNT // len(lengths)
                places = list(itertools.product(range(len(lengths)), (0, each - 1)))
                rows = [heldout_items.needle_row(lengths[place], index) for place, index in places]
                stored = [stored[place * each + index] for place, index in places]
            else:
                rows = itertools.islice(heldout_items.rows(skill), 250)
                stored = stored[:250]
            made = [heldout_items.line(row) for row in rows]
            self.assertEqual(made, stored, skill)


if __name__ == "__main__":
    unittest.main()
