#!/usr/bin/env python3
"""Scores a running server on the held-out items. Needs only Python's own library.

    build/cpu/winnow serve --model-path models/winnow-mini --reasoning-parser glm45 --port 30000 &
    tools/mini/score.py --base-url http://127.0.0.1:30000 --skill choices --num 200 --parallel 8

Skills: problem (plain completions with --shots examples over /generate), problem_chat, needle,
tools, choices, talk (over /v1/chat/completions, temperature 0). --thinking on or off overrides what
an item says. Prints the share of right answers with its standard error and the share of answers
whose form is broken: no "####" or "Answer: X", thinking where none was asked for or none where it
was, tags in the text, calls that cannot be read, or a length limit that was hit.
"""
import argparse
import concurrent.futures
import json
import math
import sys
import time
import urllib.error
import urllib.request

import heldout_items
import judge


def post(url, body, timeout):
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")[:500]
        raise SystemExit(f"{url}: {error.code} {text}") from error
    except urllib.error.URLError as error:
        raise SystemExit(f"{url}: {error.reason}") from error


def completion(args, item):
    text = item["shots"] + f"Question: {item['question']}\nAnswer:"
    body = {"text": text, "sampling_params": {"temperature": 0, "max_new_tokens": args.max_tokens,
                                              "stop": ["Question"]}}
    answer = post(args.base_url + "/generate", body, args.timeout)
    info = answer["meta_info"]
    finish = (info.get("finish_reason") or {}).get("type")
    return {"reasoning": "", "content": answer["text"], "tool_calls": None, "finish": finish,
            "tokens": info["completion_tokens"], "prompt_tokens": info["prompt_tokens"]}


def openai_message(message):
    """The OpenAI API wants a call's arguments as JSON text."""
    if not message.get("tool_calls"):
        return message
    calls = [{**call, "function": {**call["function"],
                                   "arguments": json.dumps(call["function"]["arguments"])}}
             for call in message["tool_calls"]]
    return {**message, "tool_calls": calls}


def chat(args, item, thinking):
    body = {"model": args.model, "messages": list(map(openai_message, item["messages"])),
            "temperature": 0, "max_tokens": args.max_tokens,
            "chat_template_kwargs": {"enable_thinking": thinking}}
    if item.get("tools"):
        body["tools"] = item["tools"]
    answer = post(args.base_url + "/v1/chat/completions", body, args.timeout)
    choice = answer["choices"][0]
    message = choice["message"]
    return {"reasoning": message.get("reasoning_content") or "",
            "content": message.get("content") or "",
            "tool_calls": message.get("tool_calls"), "finish": choice["finish_reason"],
            "tokens": answer["usage"]["completion_tokens"],
            "prompt_tokens": answer["usage"]["prompt_tokens"]}


def items_of(args):
    if args.skill == "needle":
        return heldout_items.needle_items(args.tokens, args.num)
    items = heldout_items.load(args.skill)
    if args.skill == "problem":
        shots = "".join(f"Question: {item['question']}\nAnswer: {item['answer']}\n\n"
                        for item in items[:args.shots])
        items = [{**item, "shots": shots} for item in items[args.shots:]]
    return items[:args.num]


def ask(args, item):
    """One row of the report."""
    if args.skill == "problem":
        thinking = None
        answer = completion(args, item)
    else:
        thinking = item["thinking"] if args.thinking == "item" else args.thinking == "on"
        answer = chat(args, item, thinking)
    right, form = judge.judge(args.skill, item, answer, thinking)
    return {"kind": item.get("kind", args.skill), "thinking": thinking, "right": right,
            "form": form,
            "wanted": item["answer"], **answer}


def share(values):
    """(mean, standard error)."""
    mean = sum(values) / len(values)
    return mean, math.sqrt(mean * (1 - mean) / len(values))


def report(args, rows, seconds):
    score, error = share([row["right"] for row in rows])
    broken, broken_error = share([not row["form"] for row in rows])
    kinds = {}
    for row in rows:
        kinds.setdefault(row["kind"].partition("/")[2] or row["kind"], []).append(row["right"])
    return {"skill": args.skill, "items": len(rows), "score": round(score, 4),
            "standard_error": round(error, 4),
            "format_errors": round(broken, 4), "format_standard_error": round(broken_error, 4),
            "seconds": round(seconds, 2),
            "prompt_tokens": sum(row["prompt_tokens"] for row in rows),
            "completion_tokens": sum(row["tokens"] for row in rows),
            "kinds": {kind: {"items": len(found), "score": round(sum(found) / len(found), 4)}
                      for kind, found in sorted(kinds.items())}}


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://127.0.0.1:30000")
    parser.add_argument("--skill", choices=heldout_items.SKILLS, required=True)
    parser.add_argument("--num", type=int, default=heldout_items.COUNT, help="items (default: all)")
    parser.add_argument("--parallel", type=int, default=8, help="requests in flight (default 8)")
    parser.add_argument("--thinking", choices=["item", "on", "off"], default="item")
    parser.add_argument("--shots", type=int, default=5,
                        help="examples before a plain problem (default 5)")
    parser.add_argument("--tokens", type=int, default=0, metavar="N",
                        help="needles of about this length instead of the file's five lengths")
    parser.add_argument("--max-tokens", type=int, help="default 512, for needles 128")
    parser.add_argument("--timeout", type=float, default=600, help="seconds a request may take")
    parser.add_argument("--model", default="default", help="model name to send")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    parser.add_argument("--show", type=int, default=0, metavar="N",
                        help="print N wrong or broken answers")
    parser.add_argument("--output", metavar="FILE", help="write every answer as JSON lines")
    return parser.parse_args()


def main():
    args = options()
    args.base_url = args.base_url.rstrip("/")
    args.max_tokens = args.max_tokens or (128 if args.skill == "needle" else 512)
    items = items_of(args)
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
        rows = list(pool.map(lambda item: ask(args, item), items))
    summary = report(args, rows, time.monotonic() - start)
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            file.writelines(heldout_items.line(row) for row in rows)
    for row in [row for row in rows if not (row["right"] and row["form"])][:args.show]:
        print(json.dumps(row, ensure_ascii=False), file=sys.stderr)
    if args.json:
        print(json.dumps(summary))
        return
    right, error, broken, broken_error = (100 * summary[key] for key in (
        "score", "standard_error", "format_errors", "format_standard_error"))
    print(f"{args.skill}: {summary['items']} items, right {right:.1f} % (+- {error:.1f}), "
          f"broken form {broken:.1f} % (+- {broken_error:.1f}), "
          f"{summary['completion_tokens']} tokens in {summary['seconds']:.1f} s")
    for kind, found in summary["kinds"].items():
        print(f"  {kind:14} {found['items']:5}  {100 * found['score']:.1f} %")


if __name__ == "__main__":
    main()
