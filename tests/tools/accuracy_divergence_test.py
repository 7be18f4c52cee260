#!/usr/bin/env python3
"""tools/accuracy/divergence.py on known distributions. Exit code 77 where NumPy is missing."""
import math
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/accuracy"))
try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)
import divergence  # noqa: E402


class Divergence(unittest.TestCase):
    def test_known_distributions(self):
        p = divergence.log_softmax(np.log([[0.5, 0.25, 0.25]]))
        q = divergence.log_softmax(np.log([[0.25, 0.5, 0.25]]) + 7)
        rows = [("tools", [9, 0], [False, True])]
        (case, mean, largest, rise, same), = divergence.compare(rows, [p], [q])
        self.assertEqual(case, "tools")
        self.assertAlmostEqual(mean, 0.25 * math.log(2))
        self.assertAlmostEqual(largest, mean)
        self.assertAlmostEqual(rise, math.log(2))
        self.assertEqual(same, 0)
        self.assertAlmostEqual(divergence.compare(rows, [p], [p])[0][1], 0)


if __name__ == "__main__":
    unittest.main()
