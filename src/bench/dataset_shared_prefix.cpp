// generated-shared-prefix: groups of questions behind one system prompt, of random tokens.
#include "bench/dataset.h"

namespace winnow::bench {

namespace {

// Every id of the vocabulary, added tokens included, in order.
std::vector<int32_t> all_ids(const text::Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.token_bytes(id).empty()) ids.push_back(id);
  }
  return ids;
}

// As random.choices(ids, k=num_tokens).
std::string random_text(const DatasetContext& context,
                        const std::vector<int32_t>& vocabulary,
                        int64_t num_tokens) {
  std::vector<int32_t> ids(static_cast<size_t>(num_tokens));
  for (int32_t& id : ids) {
    id = vocabulary[static_cast<size_t>(context.random.python.random() *
                                        static_cast<double>(vocabulary.size()))];
  }
  return context.tokenizer.decode(ids, false);
}

}  // namespace

std::vector<PromptRow> shared_prefix_prompts(const DatasetOptions& options,
                                             const DatasetContext& context) {
  const int64_t groups = options.gsp_num_groups;
  const int64_t count = groups * options.gsp_prompts_per_group;
  const auto draw = [&](int64_t full, int64_t n) {
    return random_lengths(context.random.numpy, full, options.gsp_range_ratio, n);
  };
  const auto system_lengths = draw(options.gsp_system_prompt_len, groups);
  const auto question_lengths = draw(options.gsp_question_len, count);
  const auto output_lengths = draw(options.gsp_output_len, count);
  const std::vector<int32_t> vocabulary = all_ids(context.tokenizer);
  std::vector<std::string> systems;
  systems.reserve(system_lengths.size());
  for (const int64_t length : system_lengths)
    systems.push_back(random_text(context, vocabulary, length));
  std::vector<PromptRow> rows(static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t group = i / static_cast<size_t>(options.gsp_prompts_per_group);
    rows[i].text = systems[group] + "\n\n" + random_text(context, vocabulary, question_lengths[i]);
    // Random tokens seldom encode to themselves: the text's own count is the honest one.
    rows[i].prompt_len =
        context.num_prefix_tokens +
        static_cast<int64_t>(
            context.tokenizer.encode(rows[i].text, text::ControlTokens::kParse).size());
    rows[i].output_len = output_lengths[i];
  }
  if (!options.gsp_ordered) context.random.python.shuffle(rows);
  return rows;
}

}  // namespace winnow::bench
