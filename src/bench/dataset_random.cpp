// random: lengths as drawn, text of a ShareGPT file or of the tokenizer's words; random-ids:
// consecutive ids from a random one on.
#include <algorithm>

#include "base/error.h"
#include "bench/dataset.h"
#include "bench/word_prompts.h"

namespace winnow::bench {

namespace {

// The file's first turns, cut or repeated to the lengths.
void fill_from_file(const DatasetOptions& options,
                    const DatasetContext& context,
                    const std::vector<int64_t>& text_lengths,
                    std::vector<PromptRow>& rows) {
  std::vector<Conversation> conversations = read_conversations(options.path, false);
  context.random.python.shuffle(conversations);
  size_t filled = 0;
  for (const Conversation& conversation : conversations) {
    if (filled == rows.size()) break;
    const auto ids = context.tokenizer.encode(conversation.prompt, text::ControlTokens::kPlain);
    if (ids.empty()) continue;
    std::vector<int32_t> exact(static_cast<size_t>(text_lengths[filled]));
    for (size_t j = 0; j < exact.size(); ++j) exact[j] = ids[j % ids.size()];
    if (options.as_ids) {
      rows[filled].ids = std::move(exact);
    } else {
      rows[filled].text = context.tokenizer.decode(exact, false);
    }
    ++filled;
  }
  if (filled < rows.size()) {
    context.note(
        fmt::format("{} has prompts for {} of {} requests", options.path, filled, rows.size()));
    rows.resize(filled);
  }
}

void fill_with_words(const DatasetOptions& options,
                     const DatasetContext& context,
                     const std::vector<int64_t>& text_lengths,
                     std::vector<PromptRow>& rows) {
  const WordPrompts words(context.tokenizer);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (options.as_ids) {
      rows[i].ids = words.ids(text_lengths[i], context.random.words);
    } else {
      rows[i].text = words.text(text_lengths[i], context.random.words);
    }
  }
  context.note("No --dataset-path of ShareGPT's JSON: prompts are random words of the tokenizer");
}

void fill_with_consecutive_ids(const DatasetOptions& options,
                               const DatasetContext& context,
                               const std::vector<int64_t>& text_lengths,
                               std::vector<PromptRow>& rows) {
  const int64_t vocab = base_vocab_size(context.tokenizer);
  std::vector<int64_t> offsets(rows.size());
  for (int64_t& offset : offsets) offset = context.random.numpy.randint(0, vocab);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(text_lengths[i]));
    for (size_t j = 0; j < ids.size(); ++j) {
      ids[j] = static_cast<int32_t>((offsets[i] + static_cast<int64_t>(i + j)) % vocab);
    }
    if (options.as_ids) {
      rows[i].ids = std::move(ids);
    } else {
      rows[i].text = context.tokenizer.decode(ids, false);
    }
  }
}

}  // namespace

std::vector<PromptRow> random_prompts(const DatasetOptions& options,
                                      const DatasetContext& context) {
  const auto draw = [&](int64_t full) {
    return random_lengths(context.random.numpy, full, options.random_range_ratio,
                          options.num_prompts);
  };
  const std::vector<int64_t> inputs = draw(options.random_input_len);
  const std::vector<int64_t> outputs = draw(options.random_output_len);
  std::vector<PromptRow> rows(inputs.size());
  std::vector<int64_t> text_lengths = inputs;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!options.as_ids) {
      text_lengths[i] = std::max(int64_t{1}, inputs[i] - context.num_prefix_tokens);
    }
    rows[i].prompt_len = text_lengths[i] + (options.as_ids ? 0 : context.num_prefix_tokens);
    rows[i].output_len = outputs[i];
  }
  if (options.name == "random-ids") {
    fill_with_consecutive_ids(options, context, text_lengths, rows);
  } else if (options.path.empty()) {
    fill_with_words(options, context, text_lengths, rows);
  } else {
    fill_from_file(options, context, text_lengths, rows);
  }
  return rows;
}

}  // namespace winnow::bench
