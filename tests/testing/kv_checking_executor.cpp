#include "testing/kv_checking_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/sequence.h"

namespace winnow::testing {
namespace {

constexpr uint64_t kStart = 0x9e3779b97f4a7c15;
constexpr uint64_t kGarbage = 0xdeadbeef;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 29);
}

uint64_t extend(uint64_t hash, int32_t token) {
  return mix(hash, static_cast<uint64_t>(token) + 1);
}

// Namespaces differ from the first token on, so a page shared across them shows.
uint64_t start_of(const engine::GenerateRequest& request) {
  uint64_t hash = kStart;
  for (const char c : request.cache_namespace) hash = extend(hash, c);
  return hash;
}

uint64_t hash_of(const engine::GenerateRequest& request, std::span<const int32_t> tokens) {
  uint64_t hash = start_of(request);
  for (int32_t token : tokens) hash = extend(hash, token);
  return hash;
}

}  // namespace

KvCheckingExecutor::KvCheckingExecutor(const engine::EngineOptions& options, KvCheckOptions check)
    : options_(options), check_(std::move(check)) {
  memory_.assign(static_cast<size_t>(options.num_pages) * static_cast<size_t>(options.page_size),
                 kGarbage);
}

void KvCheckingExecutor::report(std::string fault) {
  if (fault_.empty()) fault_ = std::move(fault);
}

uint64_t& KvCheckingExecutor::slot(const engine::SequenceSlice& slice, int32_t position) {
  const int32_t page = slice.pages[static_cast<size_t>(position / options_.page_size)];
  return memory_[static_cast<size_t>(page) * static_cast<size_t>(options_.page_size) +
                 static_cast<size_t>(position % options_.page_size)];
}

void KvCheckingExecutor::copy_tokens(int32_t from_page, int32_t to_page, int32_t num_tokens) {
  ++num_copies_;
  if (from_page == to_page) report("a page is copied to itself");
  const auto page_size = static_cast<size_t>(options_.page_size);
  const auto from = memory_.begin() + static_cast<int64_t>(from_page) * options_.page_size;
  const auto to = memory_.begin() + static_cast<int64_t>(to_page) * options_.page_size;
  std::copy(from, from + num_tokens, to);
  std::fill(to + num_tokens, to + static_cast<int64_t>(page_size), kGarbage);
}

void KvCheckingExecutor::run(const engine::BatchPlan& plan,
                             std::span<engine::SliceResult> results) {
  check_plan(plan);
  if (!fault_.empty()) return;
  for (const auto& slice : plan.slices) check_visible(slice);
  for (const auto& slice : plan.slices) write_rows(slice);
  for (size_t i = 0; i < plan.slices.size(); ++i) {
    engine::SliceResult& result = results[i];
    result = {};
    // Written by another slice of the same step in the meantime?
    engine::SequenceSlice written = plan.slices[i];
    written.start += written.num_tokens;
    check_visible(written);
    if (plan.slices[i].sample) sample(plan.slices[i], result);
  }
}

void KvCheckingExecutor::check_plan(const engine::BatchPlan& plan) {
  int32_t num_rows = 0;
  std::vector<bool> slots(static_cast<size_t>(options_.max_running_requests));
  for (const auto& s : plan.slices) {
    num_rows += s.num_tokens;
    const auto end = static_cast<size_t>(s.start) + static_cast<size_t>(s.num_tokens);
    for (const int32_t page : s.pages) {
      if (page < 0 || page >= options_.num_pages) report("a page outside the pool");
    }
    if (s.num_tokens < 1) report("a slice of no rows");  // fault B47
    if (end > s.tokens.size()) report("rows beyond the tokens");
    if (s.pages.size() * static_cast<size_t>(options_.page_size) < end) report("too few pages");
    const bool is_newest = end == s.tokens.size();
    if (s.sample != (is_newest && s.request->sampling.max_new_tokens > 0)) {
      report("samples from a row that is not the newest, or does not from the newest");
    }
    if (s.write_from > s.start + s.num_tokens) report("write_from beyond the rows");
    if (slots.at(static_cast<size_t>(s.sequence_idx))) report("two sequences in one slot");
    slots[static_cast<size_t>(s.sequence_idx)] = true;
  }
  if (num_rows != plan.num_rows) report("num_rows is wrong");
  num_rows_ += num_rows;
}

void KvCheckingExecutor::check_visible(const engine::SequenceSlice& slice) {
  uint64_t hash = start_of(*slice.request);
  for (int32_t p = 0; p < slice.start; ++p) {
    hash = extend(hash, slice.tokens[static_cast<size_t>(p)]);
    if (slot(slice, p) != hash) {
      report(fmt::format("request {}: position {} of {} holds another token's KV",
                         slice.request->rid, p, slice.tokens.size()));
      return;
    }
  }
}

void KvCheckingExecutor::write_rows(const engine::SequenceSlice& slice) {
  for (int32_t p = slice.start; p < slice.start + slice.num_tokens; ++p) {
    const uint64_t before = p == 0 ? start_of(*slice.request) : slot(slice, p - 1);
    const uint64_t hash = extend(before, slice.tokens[static_cast<size_t>(p)]);
    if (p >= slice.write_from) {
      slot(slice, p) = hash;
    } else if (slot(slice, p) != hash) {
      report(fmt::format("request {}: position {} was said to be cached", slice.request->rid, p));
    }
  }
}

void KvCheckingExecutor::sample(const engine::SequenceSlice& slice,
                                engine::SliceResult& result) const {
  uint64_t hash = hash_of(*slice.request, slice.tokens);
  const auto max_ids = static_cast<uint64_t>(check_.max_ids_per_step);
  const uint64_t num_ids = 1 + (hash >> 40) % max_ids;
  for (uint64_t i = 0; i < num_ids; ++i) {
    result.ids.push_back(static_cast<int32_t>(hash % static_cast<uint64_t>(check_.vocab_size)));
    hash = extend(hash, result.ids.back());
  }
}

std::vector<int32_t> expected_answer(const KvCheckOptions& check,
                                     const engine::GenerateRequest& request,
                                     int64_t max_new_tokens) {
  engine::Sequence sequence;
  sequence.request = request;
  sequence.tokens = request.prompt_ids;
  sequence.max_new_tokens = max_new_tokens;
  sequence.min_new_tokens = std::min(request.sampling.min_new_tokens, max_new_tokens);
  uint64_t hash = hash_of(request, sequence.tokens);
  while (max_new_tokens > 0 && sequence.finish == engine::FinishReason::kNone) {
    const auto id = static_cast<int32_t>(hash % static_cast<uint64_t>(check.vocab_size));
    hash = extend(hash, id);
    engine::append_tokens(sequence, {&id, 1}, check.eos_ids, {});
  }
  return {sequence.tokens.begin() + sequence.num_prompt(), sequence.tokens.end()};
}

}  // namespace winnow::testing
