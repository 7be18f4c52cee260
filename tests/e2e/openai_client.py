#!/usr/bin/env python3
"""The openai Python package against a running `winnow serve`.

    tests/e2e/openai_client.py WINNOW_PROGRAM

Makes a small model, serves it and talks to it as the package's users do. Exits with 77, which
counts as skipped, where the package is missing.
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile

try:
    import openai
except ImportError:
    print("skipped: no openai package")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def start(program, model):
    server = subprocess.Popen(
        [program, "serve", "--model-path", model, "--port", "0", "--served-model-name", "tiny",
         "--reasoning-parser", "glm45", "--api-key", "secret", "--max-total-tokens", "8192",
         "--threads", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    port = None
    for line in server.stdout:
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
        port = int(found.group(1)) if found else port
        if "ready to roll" in line:
            return server, port
    sys.exit("the server did not start")


def check_chat(client):
    ask = [{"role": "user", "content": "Hi"}]
    whole = client.chat.completions.create(model="tiny", messages=ask, max_tokens=12,
                                           temperature=0, logprobs=True, top_logprobs=3)
    choice = whole.choices[0]
    assert choice.message.role == "assistant"
    assert choice.finish_reason in ("stop", "length")
    assert whole.usage.completion_tokens == len(choice.logprobs.content) <= 12
    assert all(len(item.top_logprobs) == 3 for item in choice.logprobs.content)
    text = reasoning = ""
    usage = None
    for chunk in client.chat.completions.create(model="tiny", messages=ask, max_tokens=12,
                                                temperature=0, stream=True,
                                                stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for c in chunk.choices:
            text += c.delta.content or ""
            reasoning += getattr(c.delta, "reasoning_content", None) or ""
    assert text == (choice.message.content or "")
    assert reasoning == (choice.message.reasoning_content or "")
    assert usage.completion_tokens == whole.usage.completion_tokens
    several = client.chat.completions.create(model="tiny", messages=ask, max_tokens=3, n=3, seed=5)
    assert [c.index for c in several.choices] == [0, 1, 2]
    quiet = client.chat.completions.create(
        model="tiny", messages=ask, max_tokens=3,
        extra_body={"chat_template_kwargs": {"enable_thinking": False}})
    assert quiet.choices[0].message.reasoning_content is None


def check_completions(client):
    whole = client.completions.create(model="tiny", prompt=["a", "b"], max_tokens=4, n=2,
                                      temperature=0, echo=True, logprobs=2)
    assert [c.index for c in whole.choices] == [0, 1, 2, 3]
    assert whole.choices[0].text.startswith("a") and whole.choices[2].text.startswith("b")
    assert whole.choices[0].logprobs.token_logprobs[0] is None
    single = client.completions.create(model="tiny", prompt="a", max_tokens=6, temperature=0)
    streamed = "".join(chunk.choices[0].text for chunk in client.completions.create(
        model="tiny", prompt="a", max_tokens=6, temperature=0, stream=True))
    assert streamed == single.choices[0].text


def check_errors(client, port):
    assert [m.id for m in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").id == "tiny"
    for call, kind in (
            (lambda: client.models.retrieve("none"), openai.NotFoundError),
            (lambda: client.chat.completions.create(model="tiny", messages=[]),
             openai.BadRequestError),
            (lambda: client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "x"}], temperature=-1,
                stream=True), openai.BadRequestError),
            (lambda: openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1",
                                   api_key="wrong").models.list(), openai.AuthenticationError)):
        try:
            call()
        except kind as error:
            assert error.message
        else:
            raise AssertionError(f"no {kind.__name__}")


def main():
    with tempfile.TemporaryDirectory() as model:
        subprocess.run([sys.executable, ROOT / "tools" / "make_model.py", "--output", model],
                       check=True, stdout=subprocess.DEVNULL)
        server, port = start(sys.argv[1], model)
        try:
            client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="secret",
                                   max_retries=0, timeout=120)
            check_chat(client)
            check_completions(client)
            check_errors(client, port)
        finally:
            server.send_signal(signal.SIGTERM)
            code = server.wait(timeout=60)
        assert code == 0, code
    print("ok")


if __name__ == "__main__":
    main()
