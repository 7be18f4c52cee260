// Long-context lookup: one sentence with a number, hidden at a depth of a text made from a seed.
// It is the first test to break when the selection of tokens is wrong while short contexts, where
// everything is selected, still look healthy.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "eval/task.h"

namespace winnow::eval {

struct NeedleOptions {
  std::vector<int64_t> lengths = {1024, 4096, 16384};  // of the text, by `count`
  std::vector<int64_t> depths = {0, 25, 50, 75, 100};  // percent of the text before the needle
  int64_t per_cell = 4;                                // questions of one length and depth
  int64_t num_distractors = 3;                         // needles of other names, elsewhere
  uint64_t seed = 0;
  // Tokens of a sentence; words where there is no function.
  std::function<int64_t(std::string_view)> count = {};
};

// Categories are "LENGTH/DEPTH": "4096/50" is 4096 units long with the needle in the middle.
Task needle_task(const NeedleOptions& options);

// Words of a text: runs between spaces.
int64_t num_words(std::string_view text);

}  // namespace winnow::eval
