#!/usr/bin/env python3
"""tools/accuracy/faults.py and report.py: every fault still has its place in the source and is
looked for in the quick suite; tables from rows."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/accuracy"))
import faults  # noqa: E402
import suites  # noqa: E402


def source(name):
    return (ROOT / "src" / faults.FAULTS[name][1]).read_text()


def row(case, index, right, nll):
    return {"case": case, "index": index, "right": right, "form": True, "nll": nll}


class Faults(unittest.TestCase):
    def test_every_fault_changes_one_place_of_the_source(self):
        for name in faults.FAULTS:
            text = source(name)
            self.assertNotEqual(faults.faulty(name, text), text, name)

    def test_a_place_that_is_gone_ends_the_run(self):
        with self.assertRaisesRegex(SystemExit, "has changed: 0 places"):
            faults.faulty("rope", "int main() {}")
        with self.assertRaisesRegex(SystemExit, "has changed: 2 places"):
            faults.faulty("rope", source("rope") * 2)

    def test_each_is_looked_for_in_the_quick_suite(self):
        everywhere = faults.asked_of(faults.NONE)
        for name in faults.FAULTS:
            asked = faults.asked_of(name)
            self.assertTrue(asked, name)
            for configuration, counts in asked.items():
                for case, items in counts.items():
                    self.assertEqual(items, suites.SUITES["quick"][configuration][case])
                    self.assertIn(case, everywhere[configuration])
        self.assertEqual(faults.asked_of("rope", ["problem"]),
                         {"default": {"problem": suites.SUITES["quick"]["default"]["problem"]}})

    def test_the_table_says_what_was_not_seen(self):
        lines = list(faults.rows_of_table({faults.NONE: [], "rope": ["a failed", "b failed"],
                                           "scale": []}))
        self.assertEqual(lines[2], "| none: the program as it is | nothing |")
        self.assertTrue(lines[3].endswith("| a failed; b failed |"))
        self.assertTrue(lines[4].endswith("| **not seen** |"))

    def test_a_program_that_does_not_start_is_a_failure_and_no_end(self):
        found = faults.failures("/bin/false", {"default": {"problem": 1}}, {})
        self.assertEqual(len(found), 1)
        self.assertIn("did not start", found[0])


class Report(unittest.TestCase):
    def report(self, rows_of, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            for name, rows in rows_of.items():
                pathlib.Path(folder, f"{name}.jsonl").write_text(
                    "".join(json.dumps(entry) + "\n" for entry in rows))
            return subprocess.run(
                [sys.executable, ROOT / "tools/accuracy/report.py", folder, *arguments],
                capture_output=True, text=True, check=False)

    ROWS = {"default": [row("tools", i, i > 0, 0.2) for i in range(4)],
            "dense": [row("tools", i, True, 0.1) for i in range(4)]}

    def test_without_the_usual_reference_the_defaults_are_one(self):
        done = self.report(self.ROWS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 656, FP8 keys (the defaults) | 75.0 ± 23.6 | 100.0 |", done.stdout)
        self.assertIn("| against 656, FP8 keys (the defaults) |", done.stdout)
        self.assertIn("| dense attention, 656 | 4 | +25.0 ± 25.0 | 1 | 0 | -0.1000 ± 0.0000 |",
                      done.stdout)

    def test_the_usual_reference_is_taken_where_it_has_rows(self):
        done = self.report({**self.ROWS, "cache-1152": self.ROWS["dense"]})
        self.assertIn("| against 1152 (bf16), FP8 keys |", done.stdout)

    def test_one_configuration_or_no_common_question_has_no_differences(self):
        done = self.report({"keys-float32": self.ROWS["dense"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("against", done.stdout)
        done = self.report({**self.ROWS, "dense": [row("choices", 0, True, 0.1)]})
        self.assertIn("| dense attention, 656 | 0 | | | | |", done.stdout)
        done = self.report({**self.ROWS, "dense": [row("tools", 0, True, 0.1)]})
        self.assertIn("| dense attention, 656 | 1 | +100.0 | 1 | 0 | -0.1000 |", done.stdout)

    def test_counts_that_are_not_the_usual_ones_are_shown(self):
        done = self.report({**self.ROWS, "dense": self.ROWS["dense"][:2] + [
            row("choices", 0, True, 0.1)]})
        self.assertIn("| 656, FP8 keys (the defaults) | 75.0 ± 23.6 | not asked |", done.stdout)
        self.assertRegex(done.stdout, r"\| dense attention, 656 \| 100.0 ± [\d.]+ of 2 \|")
        self.assertIn("| questions | 4 | 1 | |", done.stdout)

    def test_what_is_missing_is_named(self):
        done = self.report(self.ROWS, "--reference", "cache-644")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cache-644 has no rows there; these have: default, dense", done.stderr)
        self.assertEqual(self.report({}).returncode, 1)


if __name__ == "__main__":
    unittest.main()
