// generated-shared-prefix: groups of questions behind one system prompt, of random tokens.
#include <cmath>

#include "bench/dataset.h"

namespace winnow::bench {

namespace {

using Ids = std::vector<int32_t>;

// Every id of the vocabulary, added tokens included, in order.
Ids all_ids(const text::Tokenizer& tokenizer) {
  Ids ids;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.token_bytes(id).empty()) ids.push_back(id);
  }
  return ids;
}

// As random.choices(ids, k=num_tokens).
Ids random_ids(const DatasetContext& context, const Ids& vocabulary, int64_t num_tokens) {
  Ids ids(static_cast<size_t>(num_tokens));
  for (int32_t& id : ids) {
    id = vocabulary[static_cast<size_t>(context.random.python.random() *
                                        static_cast<double>(vocabulary.size()))];
  }
  return ids;
}

// Which group each prompt is of: group by group, or by Zipf's law, the first the most wanted.
std::vector<size_t> groups_of(const DatasetOptions& options, const DatasetContext& context) {
  const auto num_groups = static_cast<size_t>(options.gsp_num_groups);
  const auto per_group = static_cast<size_t>(options.gsp_prompts_per_group);
  if (options.gsp_zipf_alpha > 0) {
    std::vector<double> shares;
    for (size_t g = 0; g < num_groups; ++g) {
      shares.push_back(1 / std::pow(static_cast<double>(g + 1), options.gsp_zipf_alpha));
    }
    return context.random.groups.choice(shares, num_groups * per_group);
  }
  std::vector<size_t> groups(num_groups * per_group);
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = i / per_group;
  return groups;
}

// A prompt of its group's system prompt and its own questions, one a turn.
PromptRow prompt_of(const DatasetOptions& options,
                    const DatasetContext& context,
                    const Ids& system,
                    std::span<const Ids> questions) {
  PromptRow row;
  if (options.as_ids) {
    row.ids = system;
    row.ids.insert(row.ids.end(), questions[0].begin(), questions[0].end());
    row.prompt_len = static_cast<int64_t>(row.ids.size());
    return row;
  }
  const auto text_of = [&](const Ids& ids) { return context.tokenizer.decode(ids, false); };
  // Random tokens seldom encode to themselves: the text's own count is the honest one.
  const auto count = [&](const std::string& text) {
    return static_cast<int64_t>(context.tokenizer.encode(text, text::ControlTokens::kParse).size());
  };
  row.text = text_of(system) + "\n\n" + text_of(questions[0]);
  row.prompt_len = context.num_prefix_tokens + count(row.text);
  for (const Ids& question : questions.subspan(1)) {
    row.later_turns.push_back(text_of(question));
    row.later_lens.push_back(count(row.later_turns.back()));
  }
  return row;
}

}  // namespace

std::vector<PromptRow> shared_prefix_prompts(const DatasetOptions& options,
                                             const DatasetContext& context) {
  const int64_t count = options.gsp_num_groups * options.gsp_prompts_per_group;
  const auto draw = [&](int64_t full, int64_t n) {
    return random_lengths(context.random.numpy, full, options.gsp_range_ratio, n);
  };
  const auto system_lengths = draw(options.gsp_system_prompt_len, options.gsp_num_groups);
  const auto question_lengths = draw(options.gsp_question_len, count * options.gsp_num_turns);
  const auto output_lengths = draw(options.gsp_output_len, count);
  const Ids vocabulary = all_ids(context.tokenizer);
  const auto texts = [&](const std::vector<int64_t>& lengths) {
    std::vector<Ids> drawn;
    drawn.reserve(lengths.size());
    for (const int64_t length : lengths) drawn.push_back(random_ids(context, vocabulary, length));
    return drawn;
  };
  const std::vector<Ids> systems = texts(system_lengths);
  const std::vector<Ids> questions = texts(question_lengths);
  const std::vector<size_t> groups = groups_of(options, context);
  const auto turns = static_cast<size_t>(options.gsp_num_turns);
  std::vector<PromptRow> rows;
  rows.reserve(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    rows.push_back(prompt_of(options, context, systems[groups[i]],
                             std::span(questions).subspan(i * turns, turns)));
    rows.back().output_len = output_lengths[i];
  }
  if (!options.gsp_ordered) context.random.python.shuffle(rows);
  return rows;
}

}  // namespace winnow::bench
