"""scores.json: what was measured, and how far below it a run may fall.

    margin_standard_errors   m
    weights                  checksum of the weights that the numbers belong to
    least_rise               of nll that counts as one, in nats
    deviation                case -> root of the mean square, over items, of the difference in nll
                             between `default` and `reference`: how far rounding alone moves an item
    agreement_limit          see below
    quick, full              configuration -> case -> items, right, form, nll; of `reference` also
                             nlls, those of the single items

nll is the mean negative log-likelihood of the right answer's tokens, in nats. A score (right, form)
may fall m of its standard errors below the measured one, the mean nll rise m * deviation /
sqrt(items) above it, or least_rise where that is more. Better is never a failure.

Faults that cost too little to be seen in so few answers show in the agreement: in fp32 throughout,
processors differ by rounding alone, so the items' nll may differ from the recorded by no more than
agreement_limit in the mean of their absolute differences.
"""
import hashlib
import json
import math
import operator
import pathlib
import statistics

PATH = pathlib.Path(__file__).resolve().parent / "scores.json"
# What a table begins with.
RULES = {"margin_standard_errors": 4, "least_rise": 1e-3, "agreement_limit": 5e-5}


def load(path=PATH):
    return json.loads(path.read_text()) if path.exists() else dict(RULES)


def _text(value, indent=""):
    """JSON with one line for each object that holds no other."""
    if not isinstance(value, dict) or not any(isinstance(v, dict) for v in value.values()):
        return json.dumps(value)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def save(table, path=PATH):
    path.write_text(_text(table) + "\n")


def checksum(model):
    """Of the weights in a checkpoint folder."""
    digest = hashlib.sha256()
    for file in sorted(pathlib.Path(model).glob("*.safetensors")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def summary(rows, singly=False):
    """case -> items, right, form, mean nll; singly: also the nll of each item."""
    by_case = {}
    for row in rows:
        by_case.setdefault(row["case"], []).append(row)
    out = {}
    for case, found in by_case.items():
        nlls = [row["nll"] for row in found]
        out[case] = {"items": len(found), "right": sum(row["right"] for row in found),
                     "form": sum(row["form"] for row in found),
                     "nll": round(statistics.fmean(nlls), 6)}
        if singly:
            out[case]["nlls"] = [round(nll, 5) for nll in nlls]
    return out


def standard_error(right, items):
    """Of a share; one more right and one more wrong, so that 24 of 24 has a spread as well."""
    share = (right + 1) / (items + 2)
    return math.sqrt(share * (1 - share) / items)


def paired(rows, others, field="nll"):
    """Differences of rows - others over the items that both have, by case."""
    known = {(row["case"], row["index"]): row[field] for row in others}
    out = {}
    for row in rows:
        key = (row["case"], row["index"])
        if key in known:
            out.setdefault(row["case"], []).append(float(row[field]) - float(known[key]))
    return out


def deviations(rows, others):
    return {case: round(math.sqrt(statistics.fmean(value * value for value in found)), 6)
            for case, found in paired(rows, others).items()}


def limits(table, case, entry):
    """Lowest right and form shares and highest nll that pass."""
    margin, items = table["margin_standard_errors"], entry["items"]
    floors = {what: entry[what] / items - margin * standard_error(entry[what], items)
              for what in ("right", "form")}
    rise = margin * table["deviation"][case] / math.sqrt(items)
    return {**floors, "nll": entry["nll"] + max(rise, table["least_rise"])}


def check(table, suite, configuration, measured):
    """Lines of a report, each with whether it passes: one a case and figure."""
    recorded = table.get(suite, {}).get(configuration, {})
    for case, entry in measured.items():
        wanted = recorded.get(case)
        if wanted is None or wanted["items"] != entry["items"]:
            # Of the full suite the table need not have everything.
            yield (f"{configuration:16} {case:13} {entry}: not in scores.json with these items",
                   suite == "full" and wanted is None)
            continue
        allowed = limits(table, case, wanted)
        for what in ("right", "form"):
            share, before = (100 * e[what] / e["items"] for e in (entry, wanted))
            fine = share >= 100 * allowed[what] - 1e-9
            yield (f"{configuration:16} {case:13} {what:6} {share:6.1f} %  recorded {before:5.1f}, "
                   f"at least {100 * allowed[what]:5.1f}", fine)
        yield (f"{configuration:16} {case:13} nll    {entry['nll']:8.4f}  recorded "
               f"{wanted['nll']:.4f}, at most {allowed['nll']:.4f}", entry["nll"] <= allowed["nll"])
        if "nlls" in wanted:
            limit = table["agreement_limit"]
            apart = statistics.fmean(map(abs, map(operator.sub, entry["nlls"], wanted["nlls"])))
            yield (f"{configuration:16} {case:13} differs from the recorded by {apart:.6f} an "
                   f"item, at most {limit}", apart <= limit)
