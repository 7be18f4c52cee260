// The prompts of a run, made or read before its clock starts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/backend_formats.h"
#include "bench/numpy_generator.h"
#include "bench/python_random.h"
#include "text/tokenizer.h"

namespace winnow::bench {

// Prompts are made before the clock starts and lie in memory together.
inline constexpr int64_t kMostPromptTokens = INT64_C(1) << 30;

struct DatasetOptions {
  std::string name = "sharegpt";
  std::string path = {};
  int64_t num_prompts = 1000;
  bool as_ids = false;  // send token ids: exact lengths on any server

  int64_t random_input_len = 1024;
  int64_t random_output_len = 1024;
  double random_range_ratio = 0;

  int64_t sharegpt_output_len = 0;   // 0: as long as the answer in the data
  int64_t sharegpt_context_len = 0;  // 0: no limit
  std::string prompt_suffix = {};

  int64_t gsp_num_groups = 64;
  int64_t gsp_prompts_per_group = 16;
  int64_t gsp_system_prompt_len = 2048;
  int64_t gsp_question_len = 128;
  int64_t gsp_output_len = 256;
  double gsp_range_ratio = 1;
  int64_t gsp_num_turns = 1;  // of a conversation; above 1 for chats only
  double gsp_zipf_alpha = 0;  // groups by Zipf's law; 0: as many prompts of each
  bool gsp_ordered = false;

  double trace_slowdown = 1;
};

// One seed's numbers: drawn from in the Python tool's order, lengths first.
struct DatasetRandom {
  explicit DatasetRandom(uint32_t seed)
      : python(seed), numpy(seed), groups(seed), words(seed ^ 0x9e3779b9u) {}
  PythonRandom python;
  NumpyRandom numpy;
  NumpyGenerator groups;  // which group a prompt is of, by Zipf's law
  PythonRandom words;     // ours: what Python takes from downloaded text
};

struct DatasetContext {
  const text::Tokenizer& tokenizer;
  int64_t num_prefix_tokens = 0;  // that a server puts in front of a text
  DatasetRandom& random;
  std::function<void(std::string)> note;  // lines for the user
};

// Throws Error: an unknown name, a file that cannot be read, no usable row.
std::vector<PromptRow> load_dataset(const DatasetOptions& options, const DatasetContext& context);
std::vector<std::string> dataset_names();

// The parts.
std::vector<PromptRow> random_prompts(const DatasetOptions& options, const DatasetContext& context);
std::vector<PromptRow> conversation_prompts(const DatasetOptions& options,
                                            const DatasetContext& context);
std::vector<PromptRow> shared_prefix_prompts(const DatasetOptions& options,
                                             const DatasetContext& context);
std::vector<PromptRow> trace_prompts(const DatasetOptions& options, const DatasetContext& context);

// count lengths, uniform in [max(floor(full * ratio), 1), full]; zeros for full <= 0.
std::vector<int64_t> random_lengths(NumpyRandom& random, int64_t full, double ratio, int64_t count);

// The file of --dataset-path, without a byte-order mark. Throws Error.
std::string dataset_text(const std::string& path);

// The first turn and its answer, of conversations of two turns or more, in file order. sharegpt:
// one JSON array; custom: a JSON object a line, where lines that are none are left out.
struct Conversation {
  std::string prompt;
  std::string answer;
};
std::vector<Conversation> read_conversations(const std::string& path, bool lines);

// The tokenizer's ids below its added tokens: what Hugging Face calls vocab_size.
int32_t base_vocab_size(const text::Tokenizer& tokenizer);

}  // namespace winnow::bench
