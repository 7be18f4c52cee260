#!/usr/bin/env python3
"""Builds faults into copies of the program and shows which figures of the quick suite fail: the
table of faults in docs/accuracy.md.

    tools/accuracy/faults.py                       every fault
    tools/accuracy/faults.py --only rope,top-k --configurations default --cases needle_2k

Builds HEAD in a worktree of its own, in a temporary folder, with the preset cpu; needs git and what
the build needs. Ends with 1 where a fault was not seen.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Name -> what it does, then the file and the text that is replaced there.
FAULTS = {
    "rope": ("indexer RoPE in half-split pairs instead of neighbours", "model/numerics.cpp",
             "= config.indexer_rope_interleave;", "= !config.indexer_rope_interleave;"),
    "page-table": ("the last token of a page is looked up in the next page",
                   "backends/cpu/topk.cpp",
                   "pages[position / page_size]", "pages[(position + 1) / page_size]"),
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
"""),
    "top-k": ("top-k loses every tenth winner", "backends/cpu/topk.cpp",
              """  finish_row(rows, t, page_size, topk, std::min(count, topk), row_slots, lens);
""", """  int64_t kept = 0;
  for (int64_t i = 0; i < std::min(count, topk); ++i) {
    if (count <= topk || i % 10 != 9) row_slots[kept++] = row_slots[i];
  }
  finish_row(rows, t, page_size, topk, kept, row_slots, lens);
"""),
    "scale": ("scale of one FP8 group: the second group of a 656 row gets the first one's",
              "backends/cpu/latent_cache.cpp",
              "load_f32(place.row + g.row_scales_offset() + 4 * group)",
              "load_f32(place.row + g.row_scales_offset() + 4 * (group == 1 ? 0 : group))"),
    "router-bias": ("router bias ignored", "model/decoder.cpp",
                    ".bias = moe.e_score_correction_bias,", ".bias = nullptr,"),
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
    const int32_t first_row = rows_.add("""),
}
INCLUDES = {"model/mla_attention.cpp": "#include <algorithm>\n#include <vector>\n",
            "engine/model_executor.cpp": "#include <string>\n#include <vector>\n"}


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME,...", default=",".join(FAULTS))
    parser.add_argument("--configurations", metavar="NAME,...", default="default,reference")
    parser.add_argument("--cases", metavar="NAME,...", default="problem,tools,choices,needle_2k")
    return parser.parse_args()


def quiet(*command, **where):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **where)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}")


def build(tree, name):
    """The program with the fault, in the worktree; its source is as before afterwards."""
    _, file, old, new = FAULTS[name]
    path = tree / "src" / file
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"{name}: src/{file} has changed: {text.count(old)} places instead of one")
    path.write_text(INCLUDES.get(file, "") + text.replace(old, new))
    try:
        quiet("cmake", "--build", "--preset", "cpu", "--target", "winnow", cwd=tree)
    finally:
        path.write_text(text)
    return tree / "build/cpu/winnow"


def failures(program, args):
    """Lines of run.py about figures that failed."""
    run = subprocess.run(
        [sys.executable, ROOT / "tools/accuracy/run.py", "--suite", "quick", "--program", program,
         "--only", args.configurations, "--cases", args.cases],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = [line.strip() for line in run.stdout.splitlines() if line.startswith("  FAIL")]
    if run.returncode and not found:
        found = ["it did not run: " + run.stdout[-300:]]
    return found


def main():
    args = options()
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        quiet("git", "worktree", "add", "--detach", tree, "HEAD", cwd=ROOT)
        try:
            quiet("cmake", "--preset", "cpu", cwd=tree)
            for name in args.only.split(","):
                found = failures(build(tree, name), args)
                print(f"{name}: {FAULTS[name][0]}", *(found or ["  NOT SEEN"]), sep="\n  ",
                      flush=True)
                missed += [] if found else [name]
        finally:
            quiet("git", "worktree", "remove", "--force", tree, cwd=ROOT)
    if missed:
        sys.exit(f"not seen: {', '.join(missed)}")


if __name__ == "__main__":
    main()
