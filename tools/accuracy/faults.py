#!/usr/bin/env python3
"""Builds faults into copies of the program and shows which figures of the quick suite fail: the
table of faults in docs/accuracy.md.

    tools/accuracy/faults.py                       every fault; prints the table at its end
    tools/accuracy/faults.py --only rope,top-k --cases needle_2k

Builds HEAD in a worktree of its own, in a temporary folder, with the preset cpu; needs git and what
the build needs. Each fault is asked the part of the quick suite that is written beside it here, and
the program without a fault is asked all of these parts first, where nothing may fail. Ends with 1
where a fault was not seen or the program without one fails.
"""
import argparse
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import table
from configurations import CONFIGURATIONS, model_of
from measure import measure
from server import Server
from suites import SUITES

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/winnow-mini"
QUICK = SUITES["quick"]
# Name -> what it does, the file and the text that is replaced there, and where it is looked for:
# configuration -> cases.
FAULTS = {
    "rope": ("indexer RoPE in half-split pairs instead of neighbours", "model/numerics.cpp",
             "= config.indexer_rope_interleave;", "= !config.indexer_rope_interleave;",
             {"default": ["needle_2k", "problem"]}),
    "page-table": ("page table off by one: the last token of a page is looked up in the next page",
                   "backends/cpu/topk.cpp",
                   "pages[position / page_size]", "pages[(position + 1) / page_size]",
                   {"default": ["needle_2k", "choices"]}),
    "shared-layer": ("shared layers reuse the choice of one full layer too early",
                     "model/mla_attention.cpp",
                     """  if (weights.indexer) {
    const trace::Span span("indexer", layer);
    select_tokens(step, layer, *weights.indexer);
  }
  attend(step, layer, weights);
""", """  static std::vector<int32_t> earlier;
  int32_t* slots = ws.slots.as<int32_t>();
  const int64_t count = step.rows.num_rows * step.config.index_topk;
  if (weights.indexer) {
    const trace::Span span("indexer", layer);
    earlier.assign(slots, slots + count);
    select_tokens(step, layer, *weights.indexer);
  }
  if (!weights.indexer) std::swap_ranges(earlier.begin(), earlier.end(), slots);
  attend(step, layer, weights);
  if (!weights.indexer) std::swap_ranges(earlier.begin(), earlier.end(), slots);
""", {"default": ["needle_2k", "tools"]}),
    "top-k": ("top-k loses every tenth winner", "backends/cpu/topk.cpp",
              """  finish_row(rows, t, page_size, topk, std::min(count, topk), row_slots, lens);
""", """  int64_t kept = 0;
  for (int64_t i = 0; i < std::min(count, topk); ++i) {
    if (count <= topk || i % 10 != 9) row_slots[kept++] = row_slots[i];
  }
  finish_row(rows, t, page_size, topk, kept, row_slots, lens);
""", {"default": ["needle_2k", "problem"]}),
    "scale": ("scale of one FP8 group: the second group of a 656 row gets the first one's",
              "backends/cpu/latent_cache.cpp",
              "load_f32(read.place.row + g.row_scales_offset() + 4 * group)",
              "load_f32(read.place.row + g.row_scales_offset() + 4 * (group == 1 ? 0 : group))",
              {"default": ["choices"]}),
    "router-bias": ("router bias ignored", "model/decoder.cpp",
                    ".bias = moe.e_score_correction_bias,", ".bias = nullptr,",
                    {"reference": ["needle_4k", "problem", "choices", "thinking_on"]}),
    "prefix-keys": ("prefix hit without index keys: those of the shared pages are zero",
                    "engine/model_executor.cpp",
                    "    const int32_t first_row = rows_.add(",
                    """    static std::vector<std::string> known;
    const std::string& rid = slice.request->rid;
    if (slice.start > 0 && std::find(known.begin(), known.end(), rid) == known.end()) {
      const int64_t bytes = cache_plan_.index_key.page_bytes();
      for (int32_t layer = 0; layer < storage_.num_layers(); ++layer) {
        auto* keys = static_cast<uint8_t*>(storage_.index_keys(layer));
        for (int32_t at = 0; keys != nullptr && at < slice.start / cache_plan_.latent.page_size;
             ++at) {
          std::fill_n(keys + slice.pages[at] * bytes, bytes, uint8_t{0});
        }
      }
    }
    known.push_back(rid);
    const int32_t first_row = rows_.add(""",
                    {"default": ["needle_2k", "tools"]}),
}
INCLUDES = {"model/mla_attention.cpp": "#include <algorithm>\n#include <vector>\n",
            "engine/model_executor.cpp": "#include <string>\n#include <vector>\n"}


NONE = "none"  # the program as it is


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME,...", default=",".join([NONE, *FAULTS]),
                        help=f"{NONE} (the program as it is), {', '.join(FAULTS)}")
    parser.add_argument("--cases", metavar="NAME,...", help="only these of each fault's cases")
    args = parser.parse_args()
    args.only = args.only.split(",")
    args.cases = args.cases and args.cases.split(",")
    unknown = set(args.only) - {NONE, *FAULTS}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    return args


def asked_of(name, cases=None):
    """configuration -> case -> items: where the fault is looked for; of NONE, where any is."""
    wanted = [FAULTS[name][4]] if name in FAULTS else [fault[4] for fault in FAULTS.values()]
    out = {}
    for where in wanted:
        for configuration, names in where.items():
            found = out.setdefault(configuration, {})
            found.update({case: QUICK[configuration][case] for case in names
                          if cases is None or case in cases})
    return {configuration: counts for configuration, counts in out.items() if counts}


def quiet(*command, **where):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **where)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}")


def faulty(name, text):
    """The text of the fault's source file with the fault."""
    _, file, old, new, _ = FAULTS[name]
    if text.count(old) != 1:
        sys.exit(f"{name}: src/{file} has changed: {text.count(old)} places instead of one")
    return INCLUDES.get(file, "") + text.replace(old, new)


def build(tree, name):
    """The program with the fault, in the worktree; its source is as before afterwards."""
    command = ("cmake", "--build", "--preset", "cpu", "--target", "winnow")
    if name == NONE:
        quiet(*command, cwd=tree)
        return tree / "build/cpu/winnow"
    path = tree / "src" / FAULTS[name][1]
    text = path.read_text()
    path.write_text(faulty(name, text))
    try:
        quiet(*command, cwd=tree)
    finally:
        path.write_text(text)
    return tree / "build/cpu/winnow"


def failures(program, asked, scores):
    """What failed, one line a figure."""
    found = []
    for configuration, counts in asked.items():
        try:
            with model_of(configuration, MODEL) as model:
                with Server(program, model, CONFIGURATIONS[configuration]) as server:
                    rows = measure(server, counts)
        except SystemExit as error:
            found.append(f"{configuration}: the program failed: {str(error)[-300:]}")
            continue
        measured = table.summary(rows, singly=configuration == "reference")
        found += [" ".join(line.split()) for line, fine
                  in table.check(scores, "quick", configuration, measured) if not fine]
    return found


def rows_of_table(found):
    """The table of docs/accuracy.md: fault, what failed."""
    yield "| fault | what failed |"
    yield "|---|---|"
    for name, lines in found.items():
        shown = "nothing" if name == NONE else "**not seen**"
        title = "none: the program as it is" if name == NONE else FAULTS[name][0]
        yield f"| {title} | {'; '.join(lines) or shown} |"


def try_all(args, tree, scores):
    """name -> what failed."""
    found = {}
    for name in args.only:
        start = time.monotonic()
        program = build(tree, name)
        built = time.monotonic()
        found[name] = failures(program, asked_of(name, args.cases), scores)
        print(f"{name}: built in {built - start:.0f} s, asked in {time.monotonic() - built:.0f} s, "
              f"{len(found[name])} figures failed", *found[name], sep="\n  ", flush=True)
    return found


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the worktree goes
    args = options()
    scores = table.load()
    if scores.get("weights") != table.checksum(MODEL):
        sys.exit("scores.json was recorded with other weights: run.py --suite quick --record")
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        quiet("git", "worktree", "add", "--detach", tree, "HEAD", cwd=ROOT)
        try:
            quiet("cmake", "--preset", "cpu", cwd=tree)
            found = try_all(args, tree, scores)
        finally:
            quiet("git", "worktree", "remove", "--force", tree, cwd=ROOT)
    print("\n" + "\n".join(rows_of_table(found)))
    wrong = [name for name, lines in found.items() if bool(lines) == (name == NONE)]
    if wrong:
        sys.exit(f"not as it should be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
