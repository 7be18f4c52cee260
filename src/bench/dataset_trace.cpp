// trace: arrivals and lengths of a recorded service, in Mooncake's form. A line is
// {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}; each hash id stands
// for 512 tokens, so that lines with the same ids share what a prefix cache can share.
#include <algorithm>
#include <fstream>

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

TraceLine read_line(const json::Value& row, const std::string& where) {
  const auto number = [&](const char* key) {
    const json::Value* value = row.find(key);
    if (value == nullptr || !value->is_number()) throw_error("{}: no number \"{}\"", where, key);
    return value->as_number();
  };
  TraceLine line;
  line.timestamp_ms = number("timestamp");
  line.output_length = static_cast<int64_t>(number("output_length"));
  if (const json::Value* ids = row.find("hash_ids"); ids != nullptr && ids->is_array()) {
    for (const json::Value& id : ids->as_array()) {
      if (!id.is_integer()) throw_error("{}: a hash id that is no integer", where);
      line.hash_ids.push_back(id.as_integer());
    }
  }
  const bool has_length = row.find("input_length") != nullptr;
  line.input_length = has_length ? static_cast<int64_t>(number("input_length"))
                                 : static_cast<int64_t>(line.hash_ids.size()) * kBlockTokens;
  if (line.input_length < 1 || line.output_length < 0) throw_error("{}: bad lengths", where);
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
      PythonRandom of_block(static_cast<uint64_t>(std::abs(line.hash_ids[block])));
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
  std::ifstream file(options.path, std::ios::binary);
  if (!file) throw_error("--dataset-path {}: cannot be read", options.path);
  std::vector<TraceLine> lines;
  int64_t line_number = 0;
  for (std::string text; std::getline(file, text);) {
    ++line_number;
    if (text.empty() || static_cast<int64_t>(lines.size()) == options.num_prompts) continue;
    const std::string where = fmt::format("{}:{}", options.path, line_number);
    auto row = json::parse(text);
    if (!row.ok()) throw_error("{}: {}", where, row.status().message);
    lines.push_back(read_line(row.value(), where));
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
