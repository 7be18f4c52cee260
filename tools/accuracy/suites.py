"""How many items of each case every configuration is asked."""
from configurations import CONFIGURATIONS

_ALL = {"problem": 24, "thinking_off": 12, "thinking_on": 12, "tools": 12, "choices": 24,
        "needle_2k": 24, "needle_4k": 24, "needle_8k": 24}
_BRIEF = {"problem": 12, "needle_2k": 24}
# Of all cases, so that the deviations between default and reference can be taken.
_AGREEMENT = {**_ALL, "problem": 12, "thinking_off": 8, "thinking_on": 8, "tools": 8, "choices": 8}

# quick: for every build; full: for docs/accuracy.md and after a change of model or arithmetic.
SUITES = {
    "quick": {**{name: _BRIEF for name in CONFIGURATIONS if name != "dense-reference"},
              "default": _ALL, "reference": _AGREEMENT},
    "full": {name: {**dict.fromkeys(_ALL, 48), "thinking_off": 24, "thinking_on": 24}
             for name in CONFIGURATIONS},
}
