"""What is right and what is well-formed, by skill. Each judge gets the item and the answer.

An answer is {"reasoning", "content", "tool_calls", "finish"}; tool_calls is None where the server
parses none, and then calls are read from the text. Judges return (right, well-formed).
"""
import json
import re

TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "<arg_value>", "<|")
PAIR = r"<arg_key>(.*?)</arg_key><arg_value>(.*?)</arg_value>"
ARGUMENT = re.compile(PAIR, re.S)
CALL = re.compile(f"<tool_call>([\\w.-]+)((?:{PAIR})*)</tool_call>", re.S)


def split_thinking(answer, thinking):
    """Takes reasoning out of the text where the server did not."""
    content = answer["content"] or ""
    if thinking and not answer["reasoning"] and "</think>" in content:
        reasoning, _, content = content.partition("</think>")
        return {**answer, "reasoning": reasoning.removeprefix("<think>"), "content": content}
    return {**answer, "content": content}


def thinking_form(answer, thinking):
    """Reasoning is there exactly where it was asked for, and no tag is left in the text."""
    tidy = not any(tag in answer["content"] for tag in TAGS)
    return bool(answer["reasoning"]) == thinking and tidy and answer["finish"] != "length"


def final_number(text):
    found = re.findall(r"#### (-?[\d,]+)", text)
    return found[-1].replace(",", "") if found else None


def problem(item, answer):
    number = final_number(answer["content"])
    wanted = item["answer"] if "messages" in item else final_number(item["answer"])
    # A completion may run on to another question: only the first #### counts then.
    return number == wanted, number is not None and answer["content"].count("####") == 1


def choices(item, answer):
    found = re.findall(r"(?i)Answer\s*:\s*([A-D])", answer["content"])
    return found[:1] == [item["answer"]], bool(re.search(r"Answer: [A-D]\s*$", answer["content"]))


def words(item, answer):
    """Every word that the answer must hold occurs, numbers as whole numbers."""
    return all(re.search(rf"(?<![\w.-]){re.escape(word)}(?!\w|\.\d)", answer["content"])
               for word in item["answer"]), bool(answer["content"].strip())


def needle(item, answer):
    right, form = words(item, answer)
    # No other code beside those that were asked for.
    codes = re.findall(r"\d{3,}", answer["content"])
    return right and all(code in item["answer"] for code in codes), form


def _value(text, schema):
    if schema.get("type") == "string":
        return text
    return json.loads(text)


def calls_in_text(text, tools):
    """[(name, arguments)] of GLM's tags; None where they are broken."""
    functions = [tool["function"] for tool in tools]
    schemas = {function["name"]: function["parameters"]["properties"] for function in functions}
    if CALL.sub("", text).strip():
        return None
    found = []
    for name, arguments, *_ in CALL.findall(text):
        try:
            found.append((name, {key: _value(value, schemas.get(name, {}).get(key, {}))
                                 for key, value in ARGUMENT.findall(arguments)}))
        except ValueError:
            return None
    return found


def tools(item, answer):
    expected = item["expected"].get("tool_calls")
    if not expected:
        right, form = words(item, answer)
        return right and not answer["tool_calls"], form and "<tool_call>" not in answer["content"]
    wanted = [(call["name"], call["arguments"]) for call in item["answer"]]
    if answer["tool_calls"]:
        try:
            made = [(call["function"]["name"], json.loads(call["function"]["arguments"]))
                    for call in answer["tool_calls"]]
        except ValueError:
            return False, False
        return made == wanted, not answer["content"].strip()
    made = calls_in_text(answer["content"], item["tools"])
    return made == wanted, bool(made)


JUDGES = {"problem": problem, "problem_chat": problem, "choices": choices, "talk": words,
          "needle": needle,
          "tools": tools}


def judge(skill, item, answer, thinking):
    """(right, well-formed) of one answer; `thinking` None for plain completions."""
    if thinking is None:
        right, form = JUDGES[skill](item, answer)
        return right, form and answer["finish"] != "length"
    answer = split_thinking(answer, thinking)
    right, form = JUDGES[skill](item, answer)
    in_text = not answer["tool_calls"] and skill == "tools" and "<tool_call>" in answer["content"]
    shape = {**answer, "content": ""} if in_text else answer
    return right, form and thinking_form(shape, thinking)
