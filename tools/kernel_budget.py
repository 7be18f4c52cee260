#!/usr/bin/env python3
"""Registers, spills and static shared memory of every kernel, held to tests/gpu/kernel_budget.json.

    tools/kernel_budget.py check [BUILD]   fails where a kernel needs more than its budget, or has none
    tools/kernel_budget.py write [BUILD]   makes the budget of what the build needs
BUILD: a build folder with CUDA (build/cuda); the compiler launcher leaves the reports beside its objects.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGET = ROOT / "tests/gpu/kernel_budget.json"
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def without_parameters(name):
    """f<(E)2>(int, T (*)(int)) -> f<(E)2>"""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at] if name[at] == "(" else name
    return name


def demangled(names):
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout
    return [re.sub(r"^void |winnow::(kernels|layout)::|\(anonymous namespace\)::", "",
                   without_parameters(name)) for name in text.splitlines()]


def read(build):
    usage = {}
    reports = list(pathlib.Path(build).rglob("src/**/kernels/*/*.o.ptxas"))
    if not reports:
        sys.exit(f"{build}: no reports of ptxas; build winnow_gpu_check there")
    for report in reports:
        kernel = None
        for line in report.read_text().splitlines():
            if match := ENTRY.search(line):
                kernel = match.groups()
                usage[kernel] = {"registers": 0, "spills": 0, "shared": 0}
            elif kernel and (match := SPILLS.search(line)):
                usage[kernel]["spills"] = int(match.group(1))
            elif kernel and (match := USED.search(line)):
                usage[kernel]["registers"] = int(match.group(1))
                if match := SHARED.search(line):
                    usage[kernel]["shared"] = int(match.group(1))
                kernel = None
    names = demangled([mangled for mangled, _ in usage])
    return {f"{name} {arch}": need for name, ((_, arch), need) in zip(names, usage.items())}


def check(build):
    budget, wrong = json.loads(BUDGET.read_text()), 0
    for name, need in sorted(read(build).items()):
        have = budget.get(name)
        if have is None:
            print(f"kernel_budget: {name} has no budget: {need}")
            wrong += 1
            continue
        for what, amount in need.items():
            if amount > have[what]:
                print(f"kernel_budget: {name} needs {amount} {what}, has {have[what]}")
                wrong += 1
    print(f"kernel_budget: {wrong} kernels beyond their budget")
    return 1 if wrong else 0


def write(build):
    lines = [f"  {json.dumps(name)}: {json.dumps(need)}" for name, need in sorted(read(build).items())]
    BUDGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 0


if __name__ == "__main__":
    verb, build = (sys.argv + ["", ""])[1], (sys.argv + ["", "", ""])[2] or ROOT / "build/cuda"
    sys.exit({"check": check, "write": write}[verb](build) if verb in ("check", "write") else __doc__)
