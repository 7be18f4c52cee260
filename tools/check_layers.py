#!/usr/bin/env python3
"""Holds the #include lines of src/ to the module arrows of ARCHITECTURE.md.

    tools/check_layers.py [SRC]

Prints file:line for each arrow that points the wrong way and exits with 1.
"""
import pathlib
import re
import sys

MODULES = {
    "base": "",
    "layout": "",
    "tensor": "base",
    "ops": "base layout tensor",
    "kernels": "layout",
    "backends": "base layout tensor ops kernels",
    "kv": "base layout tensor",
    "text": "base",
    "model": "base layout tensor ops kv",
    "engine": "base layout tensor ops kv model",
    "server": "base text engine",
    "bench": "base text",
    "eval": "base text bench",
}
ALLOWED = {name: set(deps.split()) | {name} for name, deps in MODULES.items()}
ALLOWED["app"] = set(MODULES) | {"app"}

# Third-party headers that only one place may see: (pattern, folders or files that may).
CONFINED = [
    (re.compile(r"cuda|cublas|nccl"), ("kernels/", "backends/cuda/")),
    (re.compile(r"boost/"), ("server/", "bench/", "eval/statistics.cpp")),
    (re.compile(r"simdjson"), ("base/json.cpp", "base/json_fault.cpp", "base/utf8.cpp", "bench/event_reader.cpp")),
    (re.compile(r"CLI/"), ("app/",)),
    (re.compile(r"spdlog"), ("base/",)),
    (re.compile(r"dnnl|oneapi"), ("bench/",)),
]
BANNED_NAMES = re.compile(r"(^|_)(utils?|common|helpers?|misc|impl|v2|new|factory)(_|\.|$)")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def problems_of(src, path):
    rel = path.relative_to(src).as_posix()
    module = rel.split("/")[0]
    if BANNED_NAMES.search(path.name):
        yield 1, f"the name {path.name} says nothing about the file's one job"
    if module not in ALLOWED:
        yield 1, f"module {module} is not in tools/check_layers.py and ARCHITECTURE.md"
        return
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        kind, target = match.groups()
        owner = target.split("/")[0]
        if kind == '"':
            if "/" not in target:
                yield number, f'"{target}" is not module-qualified'
            elif not (src / target).exists():
                yield number, f'"{target}" does not exist in src/'
            elif owner not in ALLOWED[module]:
                yield number, f"{module} may not include {owner} ({target})"
        else:
            for pattern, homes in CONFINED:
                if pattern.search(target) and not rel.startswith(homes):
                    yield number, f"<{target}> belongs in {', '.join(homes)} only"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    src = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "src"
    count = 0
    files = sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cpp", ".cu", ".cuh"))
    for path in files:
        for number, text in problems_of(src, path):
            print(f"{path}:{number}: {text}")
            count += 1
    print(f"check_layers: {len(files)} files, {count} problems")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
