#!/usr/bin/env python3
"""tools/accuracy: what the table lets pass, and what is asked."""
import copy
import math
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/accuracy"))
import cases  # noqa: E402
import configurations  # noqa: E402
import suites  # noqa: E402
import table  # noqa: E402

ENTRY = {"items": 100, "right": 90, "form": 100, "nll": 0.2}
TABLE = {"margin_standard_errors": 3, "least_rise": 0.02, "agreement_limit": 1e-3,
         "deviation": {"problem": 0.1},
         "quick": {"default": {"problem": ENTRY}}}


def failures(measured, scores=None):
    lines = list(table.check(scores or TABLE, "quick", "default", {"problem": measured}))
    return [line for line, fine in lines if not fine]


class Table(unittest.TestCase):
    def test_the_recorded_and_the_better_pass(self):
        self.assertEqual(failures(ENTRY), [])
        self.assertEqual(failures({**ENTRY, "right": 100, "nll": 0.0}), [])

    def test_three_standard_errors(self):
        error = table.standard_error(90, 100)
        self.assertAlmostEqual(error, math.sqrt(91 / 102 * 11 / 102 / 100))
        lowest = math.ceil(90 - 300 * error)
        self.assertEqual(failures({**ENTRY, "right": lowest}), [])
        self.assertIn("right", failures({**ENTRY, "right": lowest - 1})[0])
        self.assertIn("form", failures({**ENTRY, "form": 80})[0])
        self.assertEqual(failures({**ENTRY, "nll": 0.2 + 0.0299}), [])
        self.assertIn("nll", failures({**ENTRY, "nll": 0.2 + 0.0301})[0])

    def test_a_least_rise(self):
        steady = {**TABLE, "deviation": {"problem": 1e-6}}
        self.assertEqual(failures({**ENTRY, "nll": 0.2199}, steady), [])
        self.assertIn("nll", failures({**ENTRY, "nll": 0.2201}, steady)[0])

    def test_other_items_are_not_compared(self):
        self.assertIn("not in scores.json", failures({**ENTRY, "items": 99})[0])

    def test_agreement_is_two_sided(self):
        scores = copy.deepcopy(TABLE)
        scores["quick"]["default"]["problem"]["nlls"] = [0.2, 0.2]
        near, low = ({**ENTRY, "nlls": nlls} for nlls in ([0.2009, 0.1991], [0.198, 0.198]))
        self.assertEqual(failures(near, scores), [])
        self.assertIn("differs", failures(low, scores)[0])

    def test_rows_become_entries(self):
        rows = [{"case": "tools", "index": i, "right": i > 0, "form": True, "nll": i / 4}
                for i in range(4)]
        self.assertEqual(table.summary(rows, singly=True)["tools"],
                         {"items": 4, "right": 3, "form": 4, "nll": 0.375,
                          "nlls": [0, 0.25, 0.5, 0.75]})
        less = [{**row, "nll": row["nll"] - 0.1} for row in rows[1:]]
        for found in table.paired(rows, less)["tools"]:
            self.assertAlmostEqual(found, 0.1)

    def test_a_saved_table_is_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "scores.json"
            table.save(TABLE, path)
            self.assertEqual(table.load(path), TABLE)
            self.assertLess(len(path.read_text().splitlines()), 12)

    def test_the_quick_suite_is_in_the_table(self):
        scores = table.load()
        for name, counts in suites.SUITES["quick"].items():
            self.assertIn(name, configurations.SHOWN)
            found = scores["quick"][name]
            self.assertEqual({case: entry["items"] for case, entry in found.items()}, counts)
            self.assertLessEqual(set(found), set(scores["deviation"]))


class Cases(unittest.TestCase):
    def test_questions_about_a_text_are_answered_in_it(self):
        for case, tokens in cases.NEEDLE_TOKENS.items():
            items = cases.items_of(case, cases.QUESTIONS_A_TEXT + 1)
            texts = {item["prompt"].rpartition("\n\n")[0] for item in items}
            self.assertEqual(len(texts), 2, "a text and the next")
            for item in items:
                self.assertIn(item["answer"][0], item["prompt"])
                self.assertIn(item["answer"][0], item["expected_text"])
            self.assertGreater(len(items[0]["prompt"]), 2 * tokens)

    def test_a_dialogue_has_all_answers(self):
        said = [text for text, learn in cases.dialogue_pieces(2048, 0) if learn]
        self.assertEqual(said, [item["expected_text"] for item in
                                cases.items_of("needle_2k", cases.QUESTIONS_A_TEXT)])


if __name__ == "__main__":
    unittest.main()
