#include "engine/model_executor.h"

#include <algorithm>
#include <utility>

#include "base/trace.h"
#include "model/cache_views.h"

namespace winnow::engine {

namespace {

// Rows of one lm_head call: bounds the logits buffer when a long prompt asks for log-probs.
constexpr int32_t kMaxLogitRows = 64;

model::DecoderLimits limits_of(const EngineOptions& options) {
  return {.max_rows = options.chunked_prefill_size + options.max_running_requests,
          .max_logit_rows = kMaxLogitRows,
          .max_context = options.context_length};
}

}  // namespace

ModelExecutor::ModelExecutor(const EngineOptions& options,
                             const model::ModelConfig& config,
                             const model::Numerics& numerics,
                             const model::ModelWeights& weights,
                             ops::Backend& backend)
    : config_(config),
      backend_(backend),
      cache_plan_(model::plan_cache(config, numerics, options.page_size)),
      vocab_size_(config.vocab_size),
      decoder_(config, numerics, weights, cache_plan_, limits_of(options), backend),
      storage_(
          cache_plan_, options.num_pages, [&](int64_t bytes) { return backend.allocate(bytes); }),
      rows_(limits_of(options).max_rows,
            options.max_running_requests,
            options.context_length,
            options.page_size,
            backend),
      samplers_(backend.host_threads().num_threads(),
                Sampler(config.vocab_size, config.eos_token_ids)),
      outcomes_(kMaxLogitRows) {
  wanted_.reserve(limits_of(options).max_rows);
  row_idx_.reserve(kMaxLogitRows);
  if (!backend.reads_host_memory()) host_logits_.resize(int64_t{kMaxLogitRows} * vocab_size_);
}

void ModelExecutor::run(const BatchPlan& plan, std::span<SliceResult> results) {
  wanted_.clear();
  rows_.clear();
  for (size_t i = 0; i < plan.slices.size(); ++i) {
    const SequenceSlice& slice = plan.slices[i];
    SliceResult& result = results[i];
    result.ids.clear();
    result.logprobs.clear();
    result.prompt_logprobs.clear();
    result.error = {};
    const int32_t first_row = rows_.add({.tokens = slice.tokens,
                                         .start = slice.start,
                                         .num_rows = slice.num_tokens,
                                         .write_from = slice.write_from,
                                         .pages = slice.pages});
    collect_wanted(slice, static_cast<int32_t>(i), first_row);
  }
  {
    const trace::Span span("forward", rows_.num_rows());
    decoder_.forward(rows_.commit(), storage_);
  }
  consume_logits(plan, results);
}

void ModelExecutor::collect_wanted(const SequenceSlice& slice,
                                   int32_t slice_idx,
                                   int32_t first_row) {
  if (slice.prompt_logprobs_from >= 0) {
    // The row of position p scores token p + 1.
    const auto prompt_size = static_cast<int64_t>(slice.request->prompt_ids.size());
    const int64_t begin = std::max<int64_t>(slice.prompt_logprobs_from, slice.start + 1);
    const int64_t end = std::min<int64_t>(slice.start + slice.num_tokens + 1, prompt_size);
    for (int64_t position = begin; position < end; ++position) {
      wanted_.push_back({.row = first_row + static_cast<int32_t>(position - 1 - slice.start),
                         .slice = slice_idx,
                         .scored_token = slice.request->prompt_ids[position]});
    }
  }
  if (slice.sample) {
    wanted_.push_back({.row = first_row + slice.num_tokens - 1, .slice = slice_idx});
  }
}

void ModelExecutor::consume_logits(const BatchPlan& plan, std::span<SliceResult> results) {
  for (size_t first = 0; first < wanted_.size(); first += kMaxLogitRows) {
    const size_t count = std::min<size_t>(kMaxLogitRows, wanted_.size() - first);
    row_idx_.clear();
    for (size_t i = 0; i < count; ++i) row_idx_.push_back(wanted_[first + i].row);
    const float* logits =
        decoder_.logits(rows_.commit_indices(row_idx_), static_cast<int32_t>(count));
    if (!backend_.reads_host_memory()) {
      backend_.download(host_logits_.data(), logits, static_cast<int64_t>(count) * vocab_size_ * 4);
      logits = host_logits_.data();
    }
    backend_.synchronize();
    const trace::Span span("sample", static_cast<int64_t>(count));
    backend_.host_threads().parallel_for(
        static_cast<int64_t>(count), [&](int64_t i, int thread_idx) {
          const Wanted& wanted = wanted_[first + i];
          consume_row({logits + i * vocab_size_, static_cast<size_t>(vocab_size_)}, wanted,
                      plan.slices[wanted.slice], samplers_[thread_idx], outcomes_[i]);
        });
    for (size_t i = 0; i < count; ++i) {
      const Wanted& wanted = wanted_[first + i];
      add_outcome(wanted, *plan.slices[wanted.slice].request, outcomes_[i], results[wanted.slice]);
    }
  }
}

void ModelExecutor::consume_row(std::span<const float> logits,
                                const Wanted& wanted,
                                const SequenceSlice& slice,
                                Sampler& sampler,
                                Outcome& outcome) {
  const GenerateRequest& request = *slice.request;
  outcome.error = {};
  int32_t scored = wanted.scored_token;
  if (scored < 0) {
    const auto id = sampler.sample(logits, request, slice.tokens);
    if (!id.ok()) {
      outcome.error = id.status();
      return;
    }
    outcome.id = id.value();
    if (!request.logprobs.output) return;
    scored = outcome.id;
  }
  auto scores = sampler.score(logits, scored, request.logprobs);
  if (scores.ok()) {
    outcome.scores = std::move(scores.value());
  } else {
    outcome.error = scores.status();
  }
}

// A sequence's first error is its last outcome.
void ModelExecutor::add_outcome(const Wanted& wanted,
                                const GenerateRequest& request,
                                Outcome& outcome,
                                SliceResult& result) {
  if (!result.error.ok()) return;
  result.error = outcome.error;
  if (!outcome.error.ok()) return;
  if (wanted.scored_token >= 0) {
    result.prompt_logprobs.push_back(std::move(outcome.scores));
    return;
  }
  result.ids.push_back(outcome.id);
  if (request.logprobs.output) result.logprobs.push_back(std::move(outcome.scores));
}

void ModelExecutor::copy_tokens(int32_t from_page, int32_t to_page, int32_t num_tokens) {
  model::copy_page_tokens(backend_, storage_, from_page, to_page, num_tokens);
}

}  // namespace winnow::engine
