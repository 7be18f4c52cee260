#!/usr/bin/env python3
"""tools/mini/score.py against a server that answers by heart, rightly and wrongly."""
import http.server
import json
import pathlib
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/mini"))
import heldout_items  # noqa: E402
import judge  # noqa: E402

NUM = 12


def expected_answer(item):
    """The chat message that the reference would be."""
    message = dict(item["expected"])
    if message.get("tool_calls"):
        message["tool_calls"] = [{**call, "function": {**call["function"], "arguments":
                                                       json.dumps(call["function"]["arguments"])}}
                                 for call in message["tool_calls"]]
    return message


class Answering(http.server.BaseHTTPRequestHandler):
    """Knows the held-out items by heart. `spoil` changes an answer before it is sent."""

    by_heart = {}
    spoil = staticmethod(lambda message: message)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/generate":
            question = body["text"].rpartition("Question: ")[2].removesuffix("\nAnswer:")
            message = self.spoil({"content": " " + self.by_heart[question]})
            answer = {"text": message["content"], "meta_info": {
                "finish_reason": {"type": "stop"}, "completion_tokens": 1, "prompt_tokens": 1}}
        else:
            message = self.spoil(dict(self.by_heart[asked(body["messages"])]))
            answer = {"choices": [{"message": message, "finish_reason": "stop"}],
                      "usage": {"completion_tokens": 1, "prompt_tokens": 1}}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def learn(skill):
    if skill == "problem":
        return {item["question"]: item["answer"] for item in heldout_items.load(skill)}
    items = heldout_items.needle_items(1024,
                                       NUM) if skill == "needle" else heldout_items.load(skill)
    return {asked(item["messages"]): expected_answer(item) for item in items[:NUM]}


def asked(messages):
    return "\n".join(message["content"] for message in messages if message["role"] == "user")


class Scores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()

    def score(self, skill, spoil=lambda message: message):
        Answering.by_heart, Answering.spoil = learn(skill), staticmethod(spoil)
        command = [sys.executable, ROOT / "tools/mini/score.py", "--skill", skill, "--num",
                   str(NUM), "--json",
                   "--base-url", f"http://127.0.0.1:{self.server.server_port}"]
        command += ["--tokens", "1024"] if skill == "needle" else []
        report = json.loads(subprocess.run(command, check=True, capture_output=True,
                                           text=True).stdout)
        self.assertEqual(report["items"], NUM)
        return report["score"], report["format_errors"]

    def test_reference_answers_are_right_and_well_formed(self):
        for skill in heldout_items.SKILLS:
            self.assertEqual(self.score(skill), (1.0, 0.0), skill)

    def test_wrong_answers_are_wrong(self):
        def one_digit_off(message):
            flip = str.maketrans("0123456789", "1234567890")
            return {**message, "content": message["content"].translate(flip)}
        self.assertEqual(self.score("problem", one_digit_off), (0.0, 0.0))
        self.assertEqual(self.score("problem_chat", one_digit_off), (0.0, 0.0))

        def next_letter(message):
            said = message["content"]
            return {**message, "content": said[:-1] + "BCDA"["ABCD".index(said[-1])]}
        self.assertEqual(self.score("choices", next_letter), (0.0, 0.0))
        for skill in ("needle", "talk", "tools"):
            score, _ = self.score(skill, lambda message: {"content": "Sorry."})
            self.assertEqual(score, 0.0, skill)

    def test_broken_form_is_counted(self):
        def no_thinking(message):
            return {**message, "reasoning_content": ""}
        thinking = sum(item["thinking"] for item in heldout_items.load("choices")[:NUM])
        self.assertAlmostEqual(self.score("choices", no_thinking)[1], thinking / NUM, places=3)

        def leaked_tag(message):
            return {**message, "content": "<think>" + message["content"]}
        self.assertEqual(self.score("problem_chat", leaked_tag)[1], 1.0)


class Judging(unittest.TestCase):
    TOOLS = [{"type": "function", "function": {"name": "book", "parameters": {"properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "at": {"type": "object"}}}}}]
    RAW = ('<tool_call>book<arg_key>city</arg_key><arg_value>Oslo</arg_value>'
           '<arg_key>days</arg_key><arg_value>3</arg_value>'
           '<arg_key>at</arg_key><arg_value>{"row": 4}</arg_value></tool_call>')
    CALL = {"name": "book", "arguments": {"city": "Oslo", "days": 3, "at": {"row": 4}}}

    def judged(self, text, wanted=None, thinking=False):
        item = {"answer": wanted or [self.CALL], "tools": self.TOOLS,
                "expected": {"tool_calls": [1]}}
        answer = {"reasoning": "", "content": text, "tool_calls": None, "finish": "stop"}
        return judge.judge("tools", item, answer, thinking)

    def test_raw_tool_calls(self):
        self.assertEqual(self.judged(self.RAW), (True, True))
        self.assertEqual(self.judged("I think.</think>" + self.RAW, thinking=True), (True, True))
        self.assertEqual(self.judged(self.RAW + self.RAW, [self.CALL, self.CALL]), (True, True))
        self.assertEqual(self.judged(self.RAW + self.RAW), (False, True))
        self.assertEqual(self.judged(self.RAW.replace(">3<", ">4<")), (False, True))
        self.assertEqual(self.judged(self.RAW.replace(">3<", ">three<")), (False, False))
        self.assertEqual(self.judged(self.RAW.removesuffix("</tool_call>")), (False, False))
        self.assertEqual(self.judged("Oslo, 3 days"), (False, False))

    def test_a_length_limit_is_broken_form(self):
        item = {"messages": [], "answer": "7"}
        answer = {"reasoning": "", "content": "#### 7", "tool_calls": None, "finish": "length"}
        self.assertEqual(judge.judge("problem_chat", item, answer, False), (True, False))

    def test_words_are_whole(self):
        item = {"answer": ["12"]}
        for text, right in (("It is 12.", True), ("It is 123.", False), ("It is 12.5.", False),
                            ("It is -12.", False)):
            answer = {"reasoning": "", "content": text, "tool_calls": None, "finish": "stop"}
            self.assertEqual(judge.words(item, answer)[0], right, text)


if __name__ == "__main__":
    unittest.main()
