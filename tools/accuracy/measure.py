"""Asks a server all items of some cases: right or wrong, well-formed or not, and how likely the
right continuation is."""
import concurrent.futures
import types

import cases
import score  # tools/mini, on the path since cases.py

PARALLEL = 48


def _arguments(server, skill):
    return types.SimpleNamespace(base_url=server.url, skill=skill, thinking="item", model="model",
                                 timeout=900, max_tokens=128 if skill == "needle" else 512)


def _likelihood(server, item, prompt_tokens):
    """Mean negative log-likelihood of the expected continuation's tokens. The prompt is cached by
    then, so that this also runs behind a prefix hit."""
    answer = server.post("/generate", {
        "text": item["prompt"] + item["expected_text"], "return_logprob": True,
        "logprob_start_len": prompt_tokens,
        "sampling_params": {"max_new_tokens": 0, "temperature": 0}})
    found = [entry[0] for entry in answer["meta_info"]["input_token_logprobs"]]
    wanted = answer["meta_info"]["prompt_tokens"] - prompt_tokens
    if len(found) != wanted or None in found:
        raise SystemExit(f"{len(found)} log-probs for {wanted} tokens")
    return -sum(found) / len(found)


def _ask(server, case, index, item):
    row = score.ask(_arguments(server, item["skill"]), item)
    return {"case": case, "index": index, "right": row["right"], "form": row["form"],
            "nll": _likelihood(server, item, row["prompt_tokens"]),
            "prompt_tokens": row["prompt_tokens"], "kind": row["kind"],
            "said": row["reasoning"] + row["content"], "wanted": item["expected_text"]}


def measure(server, counts):
    """Rows of all items; counts: case -> number of items. The first question about a text is asked
    before its others, which then find the text in the prefix cache."""
    first, rest = [], []
    for case, count in counts.items():
        for index, item in enumerate(cases.items_of(case, count)):
            reads = case not in cases.NEEDLE_TOKENS or index % cases.QUESTIONS_A_TEXT == 0
            (first if reads else rest).append((case, index, item))
    rows = []
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for jobs in (first, rest):
            jobs.sort(key=lambda job: -len(job[2]["prompt"]))
            rows += pool.map(lambda job: _ask(server, *job), jobs)
    return sorted(rows, key=lambda row: (row["case"], row["index"]))
