// trace: arrivals and lengths of a recorded service, in Mooncake's form. A line is
// {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}; each hash id stands
// for 512 tokens, so that lines with the same ids share what a prefix cache can share.
#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "bench/dataset.h"
#include "bench/word_prompts.h"

namespace winnow::bench {

namespace {

constexpr int64_t kBlockTokens = 512;

struct TraceLine {
  double timestamp_ms = 0;
  int64_t input_length = 0;
  int64_t output_length = 0;
  std::vector<int64_t> hash_ids;
};

double number_in(
    const json::Value& row, const char* key, double low, double high, const std::string& where) {
  const json::Value* value = row.find(key);
  if (value == nullptr || !value->is_number() ||
      !(value->as_number() >= low && value->as_number() <= high)) {
    throw_error("{}: \"{}\" must be a number from {:.0f} to {:.0f}", where, key, low, high);
  }
  return value->as_number();
}

TraceLine read_line(const json::Value& row, const std::string& where) {
  constexpr double kLatestMs = 1e13;
  constexpr double kMostTokens = 1 << 24;
  TraceLine line;
  line.timestamp_ms = number_in(row, "timestamp", -kLatestMs, kLatestMs, where);
  line.output_length = static_cast<int64_t>(number_in(row, "output_length", 0, kMostTokens, where));
  if (const json::Value* ids = row.find("hash_ids"); ids != nullptr && ids->is_array()) {
    for (const json::Value& id : ids->as_array()) {
      if (!id.is_integer()) throw_error("{}: a hash id that is no integer", where);
      line.hash_ids.push_back(id.as_integer());
    }
  }
  const bool has_length = row.find("input_length") != nullptr || line.hash_ids.empty();
  line.input_length =
      has_length ? static_cast<int64_t>(number_in(row, "input_length", 1, kMostTokens, where))
                 : static_cast<int64_t>(line.hash_ids.size()) * kBlockTokens;
  return line;
}

// Words by block: the same id gives the same words; what has no id is drawn anew.
std::vector<int32_t> trace_ids(const TraceLine& line,
                               int64_t length,
                               const WordPrompts& words,
                               PythonRandom& random) {
  std::vector<int32_t> ids;
  while (static_cast<int64_t>(ids.size()) < length) {
    const size_t block = ids.size() / kBlockTokens;
    const int64_t n = std::min(kBlockTokens, length - static_cast<int64_t>(ids.size()));
    std::vector<int32_t> more;
    if (block < line.hash_ids.size()) {
      const int64_t id = line.hash_ids[block];
      PythonRandom of_block(id < 0 ? -static_cast<uint64_t>(id) : static_cast<uint64_t>(id));
      more = words.ids(kBlockTokens, of_block);
      more.resize(static_cast<size_t>(n));
    } else {
      more = words.ids(n, random);
    }
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

}  // namespace

std::vector<PromptRow> trace_prompts(const DatasetOptions& options, const DatasetContext& context) {
  if (options.path.empty()) throw_error("--dataset-name trace wants --dataset-path FILE.jsonl");
  std::istringstream file(dataset_text(options.path));
  std::vector<TraceLine> lines;
  int64_t line_number = 0;
  int64_t num_tokens = 0;
  for (std::string text; std::getline(file, text);) {
    ++line_number;
    if (text.empty() || static_cast<int64_t>(lines.size()) == options.num_prompts) continue;
    const std::string where = fmt::format("{}:{}", options.path, line_number);
    auto row = json::parse(text);
    if (!row.ok()) throw_error("{}: {}", where, row.status().message);
    lines.push_back(read_line(row.value(), where));
    num_tokens += lines.back().input_length;
    if (num_tokens > kMostPromptTokens) {
      throw_error("{}: more than {} prompt tokens in all; --num-prompts takes fewer lines", where,
                  kMostPromptTokens);
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const TraceLine& a, const TraceLine& b) {
    return a.timestamp_ms < b.timestamp_ms;
  });
  const WordPrompts words(context.tokenizer);
  std::vector<PromptRow> rows(lines.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const TraceLine& line = lines[i];
    const int64_t prefix = options.as_ids ? 0 : context.num_prefix_tokens;
    const int64_t length = std::max(int64_t{1}, line.input_length - prefix);
    auto ids = trace_ids(line, length, words, context.random.words);
    rows[i].prompt_len = length + prefix;
    rows[i].output_len = line.output_length;
    rows[i].arrival_s =
        (line.timestamp_ms - lines.front().timestamp_ms) / 1e3 * options.trace_slowdown;
    if (options.as_ids) {
      rows[i].ids = std::move(ids);
    } else {
      rows[i].text = context.tokenizer.decode(ids, false);
    }
  }
  return rows;
}

}  // namespace winnow::bench
