#include "bench/dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/mapped_file.h"

namespace winnow::bench {

namespace {

struct Row {
  std::string_view name;
  std::vector<PromptRow> (*load)(const DatasetOptions&, const DatasetContext&);
};

constexpr Row kDatasets[] = {
    {"random", random_prompts},
    {"random-ids", random_prompts},
    {"sharegpt", conversation_prompts},
    {"custom", conversation_prompts},
    {"generated-shared-prefix", shared_prefix_prompts},
    {"trace", trace_prompts},
};

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const Row& row : kDatasets) names.emplace_back(row.name);
  return names;
}

std::vector<PromptRow> load_dataset(const DatasetOptions& options, const DatasetContext& context) {
  for (const Row& row : kDatasets) {
    if (row.name != options.name) continue;
    std::vector<PromptRow> rows = row.load(options, context);
    if (rows.empty()) {
      throw_error("--dataset-name {}: no prompt of --dataset-path {} fits", options.name,
                  options.path);
    }
    return rows;
  }
  throw_error("--dataset-name {}: there are {}", options.name, fmt::join(dataset_names(), ", "));
}

std::string dataset_text(const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  try {
    std::string text = read_file(path);
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    return text;
  } catch (const Error& error) {
    throw_error("--dataset-path {}", error.what());
  }
}

std::vector<int64_t> random_lengths(NumpyRandom& random,
                                    int64_t full,
                                    double ratio,
                                    int64_t count) {
  std::vector<int64_t> lengths(static_cast<size_t>(count), 0);
  if (full <= 0) return lengths;
  const int64_t low =
      std::max(static_cast<int64_t>(std::floor(static_cast<double>(full) * ratio)), int64_t{1});
  for (int64_t& length : lengths) length = random.randint(low, full + 1);
  return lengths;
}

int32_t base_vocab_size(const text::Tokenizer& tokenizer) {
  std::vector<bool> added(static_cast<size_t>(tokenizer.vocab_size()), false);
  for (const text::AddedToken& token : tokenizer.added_tokens()) {
    if (token.id >= 0 && token.id < tokenizer.vocab_size()) {
      added[static_cast<size_t>(token.id)] = true;
    }
  }
  int32_t size = tokenizer.vocab_size();
  while (size > 0 &&
         (added[static_cast<size_t>(size) - 1] || tokenizer.token_bytes(size - 1).empty())) {
    --size;
  }
  return size;
}

}  // namespace winnow::bench
