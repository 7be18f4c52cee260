#!/usr/bin/env python3
"""Renders chat templates with Python's Jinja2, set up as Hugging Face's tokenizers set it up.

Reads a JSON array of {"template", "variables"} from the file named as the first argument and
prints a JSON array of {"text"} or {"error"}. It is always 1 January 1970. Exits with 77 where jinja2 is not installed.
"""
import datetime
import functools
import json
import sys

try:
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    sys.exit(77)


class Generation(Extension):
    """{% generation %} marks text for training; it prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    @staticmethod
    def _body(caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(0).strftime(form)
    return environment


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    environment = make_environment()
    compiled = functools.lru_cache(maxsize=None)(environment.from_string)
    results = []
    for case in cases:
        try:
            text = compiled(case["template"]).render(**case["variables"])
            text.encode("utf-8")
            results.append({"text": text})
        except Exception as error:  # any failure counts: only whether it fails is compared
            results.append({"error": f"{type(error).__name__}: {error}"})
    json.dump(results, sys.stdout, ensure_ascii=False)


main()
