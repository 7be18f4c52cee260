#!/usr/bin/env python3
"""winnow-mini's prompts and tokens: Python's rendering against the model's Jinja template, ids by
words against the whole tokenizer. Exit code 77 where `tokenizers` or `jinja2` is missing."""
import json
import pathlib
import random
import re
import sys
import unittest

try:
    import jinja2
    import tokenizers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/winnow-mini"
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/mini")]
from data import SKILLS, sample  # noqa: E402
from data.render import Renderer, chat_pieces, json_text, rendered_text  # noqa: E402
from make_tokenizer import EOS, GLM_PATTERN, SPECIAL, VISIBLE  # noqa: E402


def template():
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value, ensure_ascii=True: json_text(value)
    return environment.from_string((MODEL / "chat_template.jinja").read_text())


class Rendering(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = template()
        cls.renderer = Renderer(MODEL / "tokenizer.json")
        rng = random.Random(11)
        cls.samples = [sample(skill, rng, split) for skill in SKILLS
                       for split in ("train", "heldout") for _ in range(60)]
        cls.chats = [item for item in cls.samples if item.messages]

    def test_chats_are_what_the_template_makes(self):
        for item in self.chats:
            text = "".join(piece for piece, _ in chat_pieces(item))
            ended = self.template.render(messages=item.messages, tools=item.tools)
            calls = bool(item.messages[-1].get("tool_calls"))
            self.assertEqual(text, ended + ("<|observation|>" if calls else "<|user|>"))

    def test_an_answer_follows_the_prompt_that_a_server_makes(self):
        for item in self.chats:
            prompt = self.template.render(messages=item.prompt_messages(), tools=item.tools,
                                          add_generation_prompt=True, enable_thinking=item.thinking)
            self.assertTrue(rendered_text(item).startswith(prompt))
            ids, mask = self.renderer(item)
            prompt_ids = self.renderer.tokenizer.encode(prompt, add_special_tokens=False).ids
            self.assertEqual(ids[:len(prompt_ids)], prompt_ids)
            # All that follows the prompt is what the model must say.
            self.assertTrue(all(mask[len(prompt_ids):]))
            self.assertFalse(mask[len(prompt_ids) - 1])

    def test_calls_end_with_an_observation(self):
        item = sample("tools", random.Random(1), "train", kind="call")
        pieces = chat_pieces(item)
        self.assertTrue(pieces[-1][0].endswith("</tool_call><|observation|>"), pieces[-1])

    def test_ids_by_words_are_the_ids_of_the_whole(self):
        for item in self.samples:
            ids, mask = self.renderer(item)
            whole = self.renderer.tokenizer.encode(rendered_text(item),
                                                   add_special_tokens=False).ids
            self.assertEqual(ids, whole)
            self.assertEqual(len(ids), len(mask))
        for text in ("Zoë's 12,345.67 — 你好\n\n x", "I'LL <think> now</think>\n",
                     "  \r\n\t 9"):
            self.assertEqual(self.renderer.encode(text),
                             self.renderer.tokenizer.encode(text, add_special_tokens=False).ids)


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = json.loads((MODEL / "tokenizer.json").read_text(encoding="utf-8"))
        cls.tokenizer = tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json"))

    def test_layout_is_glms(self):
        self.assertEqual(self.tokenizer.get_vocab_size() % 128, 0)
        split = self.file["pre_tokenizer"]["pretokenizers"][0]
        self.assertEqual(split["pattern"]["Regex"], GLM_PATTERN)
        added = self.file["added_tokens"]
        self.assertEqual([token["content"] for token in added], SPECIAL + VISIBLE)
        self.assertEqual([token["special"] for token in added],
                         [True] * len(SPECIAL) + [False] * len(VISIBLE))

    def test_digits_are_never_merged(self):
        words = [word for word in self.tokenizer.get_vocab() if re.search(r"\d", word)]
        self.assertEqual(sorted(words), list("0123456789"))
        self.assertEqual(self.tokenizer.encode("1234 + 56").tokens,
                         ["1", "2", "3", "4", "Ġ+", "Ġ", "5", "6"])

    def test_generation_ends_where_turns_end(self):
        config = json.loads((MODEL / "generation_config.json").read_text())
        self.assertEqual(config["eos_token_id"],
                         [self.tokenizer.token_to_id(token) for token in EOS])

    def test_held_out_text_uses_tokens_of_training(self):
        renderer = Renderer(self.tokenizer)
        rng = random.Random(12)
        seen, unseen, total = set(), 0, 0
        for skill in SKILLS:
            for _ in range(400):
                seen.update(renderer(sample(skill, rng, "train"))[0])
        for skill in SKILLS:
            for _ in range(100):
                ids, _ = renderer(sample(skill, rng, "heldout"))
                unseen += sum(token not in seen for token in ids)
                total += len(ids)
        # A training run is 500 times this sample; here a few rare pieces may be missing.
        self.assertLess(unseen / total, 2.5e-3)


if __name__ == "__main__":
    unittest.main()
