#!/usr/bin/env python3
"""Receipts of GPU runs: CI has no card, so a run on one leaves a file that says what was checked.

    tools/gpu_receipt.py hash                 hash of the kernel sources, as receipts hold it
    tools/gpu_receipt.py write LOG.jsonl      makes tests/gpu/receipts/<date>-<hash>.json of the log
                                              of winnow_gpu_check --json, and prints a table
    tools/gpu_receipt.py check                fails when kernel sources changed since the newest
                                              receipt, unless a commit since then that touches them
                                              says "gpu-unchecked: why"
"""
import datetime
import hashlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ["src/kernels", "src/backends/cuda"]
RECEIPTS = ROOT / "tests/gpu/receipts"


def source_hash():
    digest = hashlib.sha256()
    files = [p for folder in SOURCES for p in (ROOT / folder).rglob("*") if p.is_file()]
    for path in sorted(files):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def git(*args):
    result = subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else ""


def print_table(receipt):
    print(f"{receipt['gpu']}, kernels {receipt['sources']}: {receipt['checks']} checks, "
          f"{len(receipt['failed'])} failed")
    for row in receipt["rates"]:
        name = row["bench"]
        rest = "  ".join(f"{k} {v}" for k, v in row.items() if k != "bench")
        print(f"  {name:56} {rest}")
    for row in receipt["rivals"]:
        print(f"  {row['case']:56} {row['rival']}: {row['us']} us")


def write(log):
    lines = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines() if line]
    checks = [line for line in lines if "check" in line]
    receipt = {
        "date": datetime.date.today().isoformat(),
        "commit": git("rev-parse", "HEAD"),
        "sources": source_hash(),
        "gpu": next((line["gpu"] for line in lines if "gpu" in line), ""),
        "checks": len(checks),
        "failed": [line["check"] for line in checks if not line["ok"]],
        "results": [[line["check"], line["detail"]] for line in checks],
        "rates": [line for line in lines if "bench" in line],
        "rivals": [line for line in lines if "rival" in line],
    }
    if not receipt["gpu"] or not checks:
        sys.exit(f"{log}: no GPU run")
    RECEIPTS.mkdir(parents=True, exist_ok=True)
    path = RECEIPTS / f"{receipt['date']}-{receipt['sources']}.json"
    path.write_text(json.dumps(receipt, indent=1) + "\n")
    print_table(receipt)
    print(f"wrote {path.relative_to(ROOT)}")
    return 1 if receipt["failed"] else 0


def check():
    receipts = [json.loads(p.read_text()) for p in RECEIPTS.glob("*.json")]
    current = source_hash()
    if any(r["sources"] == current and not r["failed"] for r in receipts):
        print(f"gpu_receipt: kernels {current} were checked on a card")
        return 0
    message = git("log", "-1", "--format=%B", "--", *SOURCES)
    for line in message.splitlines():
        if line.startswith("gpu-unchecked:") and line.split(":", 1)[1].strip():
            print(f"gpu_receipt: kernels {current} unchecked: {line.split(':', 1)[1].strip()}")
            return 0
    print(f"gpu_receipt: kernels {current} have no receipt. Run scripts/gpu_check on a card, or say "
          "'gpu-unchecked: why' in the commit that changes them.")
    return 1


def main():
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb == "hash":
        print(source_hash())
        return 0
    if verb == "write" and len(sys.argv) == 3:
        return write(sys.argv[2])
    if verb == "check":
        return check()
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
