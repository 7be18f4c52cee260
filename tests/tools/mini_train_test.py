#!/usr/bin/env python3
"""winnow-mini's trainer: exported weights come back, loss weights, recipes cut short, disguises.
Exit code 77 where PyTorch, safetensors or `tokenizers` is missing."""
import pathlib
import random
import sys
import tempfile
import unittest

try:
    import numpy as np
    import safetensors  # noqa: F401
    import tokenizers  # noqa: F401
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/mini"))
import schedule  # noqa: E402
from batches import Weighing, token_weights  # noqa: E402
from data import sample, tool_schemas  # noqa: E402
from data.disguise import disguise  # noqa: E402
from export import converted, load_export, write_shards  # noqa: E402
from model import Model, load_config  # noqa: E402


def small_model(seed):
    config = load_config(ROOT / "models/winnow-mini/config.json")
    # Sizes that no block of 128 divides, so that scales of border blocks are met.
    config.hidden_size, config.vocab_size, config.kv_lora_rank = 192, 256, 160
    config.num_hidden_layers, config.num_nextn_predict_layers = 4, 0
    model = Model(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
        for layer in model.layers[config.first_k_dense_replace:]:
            layer.mlp.e_score_correction_bias.normal_(generator=generator)
    return model


class Exports(unittest.TestCase):
    def test_exported_weights_come_back(self):
        model, again = small_model(1), small_model(2)
        with tempfile.TemporaryDirectory() as folder:
            write_shards(pathlib.Path(folder), converted(model, "fp8"), shard_bytes=300_000)
            self.assertGreater(len(list(pathlib.Path(folder).glob("model-*"))), 1)
            load_export(again, folder)
        state, restored = model.state_dict(), again.state_dict()
        for name, wanted in state.items():
            # e4m3 keeps 3 bits of fraction: half a step is 2^-4 of a value.
            error = (wanted - restored[name]).norm() / wanted.norm()
            self.assertLess(error.item(), 2 ** -4, name)
        # A second round changes nothing.
        first = converted(again, "fp8")
        with tempfile.TemporaryDirectory() as folder:
            write_shards(pathlib.Path(folder), first)
            load_export(model, folder)
        second = converted(model, "fp8")
        for name, tensor in first.items():
            self.assertTrue(torch.equal(tensor.float(), second[name].float()), name)


class Weights(unittest.TestCase):
    # Two answers in one conversation: places 2..5 and 8..10 are said.
    MASK = [0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1]

    def ratio(self, kind, **changes):
        plain = token_weights(kind, self.MASK, Weighing())
        return (token_weights(kind, self.MASK, Weighing(**changes)) / np.maximum(plain, 1e-6))[1:]

    def test_the_letter_of_every_answer_weighs_more(self):
        self.assertEqual(list(np.flatnonzero(self.ratio("choices/person1", letter=2.0) > 1.5) + 1),
                         [4, 9])

    def test_the_first_token_beside_tools_weighs_the_same_in_short_and_long_answers(self):
        for said in (3, 200):
            mask = [0, 0, *[1] * said, 0, 0, *[1] * said]
            weights = token_weights("tools/call", mask, Weighing(decision=9.0))
            self.assertEqual(list(np.flatnonzero(weights == 9.0)), [2, 4 + said])
            self.assertTrue((np.delete(weights, [2, 4 + said]) < 9.0).all())
        self.assertFalse((self.ratio("talk/self", decision=2.0, letter=2.0) > 1.5).any())


class Recipes(unittest.TestCase):
    def test_a_shortened_recipe_ends_in_time_and_never_grows(self):
        plan = schedule.Schedule(schedule.RECIPES["third"], 1000)
        plan.shorten(600, 100)
        self.assertEqual(plan.steps, 700)
        self.assertLess(plan.learning_rate(699), 0.03)
        plan.shorten(650, 500)
        self.assertEqual(plan.steps, 700)
        plan.shorten(699, 0)
        self.assertEqual(plan.steps, 700)


class Disguises(unittest.TestCase):
    def test_descriptions_of_parameters_stay(self):
        says = {kind.says for kind in tool_schemas.KINDS.values()}
        rng, changed = random.Random(1), 0
        for _ in range(100):
            plain = sample("tools", rng, "train", kind="call")
            item = disguise(rng, plain, 1.0)
            changed += item.tools != plain.tools
            for tool in item.tools:
                for schema in tool["function"]["parameters"]["properties"].values():
                    self.assertIn(schema["description"], says)
        self.assertGreater(changed, 90)


if __name__ == "__main__":
    unittest.main()
