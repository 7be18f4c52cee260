#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace winnow::engine {
namespace {

// Room for generated tokens taken at once, so that decoding seldom moves a sequence's memory.
constexpr int64_t kReservedTokens = 4096;

int64_t pool_tokens(const EngineOptions& options) {
  return static_cast<int64_t>(options.num_pages) * options.page_size;
}

// Tokens that may be generated: the newest token of a sequence needs no slot in the pool.
int64_t room_for_tokens(const EngineOptions& options, int64_t num_prompt) {
  return std::min<int64_t>(options.context_length, pool_tokens(options) + 1) - num_prompt;
}

template <typename Sequences>
size_t find_sequence(const Sequences& sequences, uint64_t id) {
  const auto it = std::lower_bound(sequences.begin(), sequences.end(), id,
                                   [](const auto& s, uint64_t wanted) { return s->id < wanted; });
  const bool found = it != sequences.end() && (*it)->id == id;
  return found ? static_cast<size_t>(it - sequences.begin()) : sequences.size();
}

}  // namespace

Scheduler::Scheduler(const EngineOptions& options, std::vector<int32_t> eos_ids)
    : options_(options),
      eos_ids_(std::move(eos_ids)),
      pool_(options.num_pages),
      tree_(pool_, options.page_size) {
  const auto max_running = static_cast<size_t>(options.max_running_requests);
  WINNOW_CHECK(options.max_running_requests > 0, "{}", options.max_running_requests);
  WINNOW_CHECK(options.chunked_prefill_size > 0, "{}", options.chunked_prefill_size);
  running_.reserve(max_running);
  for (int32_t slot = options.max_running_requests - 1; slot >= 0; --slot) {
    free_slots_.push_back(slot);
  }
  plan_.copies.reserve(max_running);
  plan_.batch.slices.reserve(max_running);
  plan_.sequences.reserve(max_running);
  updated_.reserve(max_running);
  ended_.reserve(max_running);
}

Status Scheduler::check_fits(const EngineOptions& options, const GenerateRequest& request) {
  const auto num_prompt = static_cast<int64_t>(request.prompt_ids.size());
  if (num_prompt == 0) return invalid_argument("prompt", "the prompt has no tokens");
  const int64_t num_new = std::min<int64_t>(request.sampling.max_new_tokens, 1);
  if (num_prompt + num_new > options.context_length) {
    return invalid_argument("prompt", "a prompt of {} tokens exceeds the context of {} tokens",
                            num_prompt, options.context_length);
  }
  if (num_prompt > pool_tokens(options)) {
    return invalid_argument("prompt", "a prompt of {} tokens exceeds the KV cache of {} tokens",
                            num_prompt, pool_tokens(options));
  }
  return {};
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  Sequence& s = *sequence;
  const SamplingParams& sampling = s.request.sampling;
  WINNOW_CHECK(waiting_.empty() || waiting_.back()->id < s.id, "id {}", s.id);
  s.max_new_tokens = std::min(sampling.max_new_tokens, room_for_tokens(options_, s.num_prompt()));
  s.min_new_tokens = std::min(sampling.min_new_tokens, s.max_new_tokens);
  s.next_prompt_logprob = s.request.logprobs.prompt_start;
  s.tokens.reserve(s.request.prompt_ids.size() +
                   static_cast<size_t>(std::min(s.max_new_tokens, kReservedTokens)));
  s.tokens.assign(s.request.prompt_ids.begin(), s.request.prompt_ids.end());
  s.pages.reserve(static_cast<size_t>(pages_for(s.tokens.capacity())));
  waiting_.push_back(std::move(sequence));
}

const StepPlan& Scheduler::schedule() {
  plan_.copies.clear();
  plan_.batch.slices.clear();
  plan_.batch.num_rows = 0;
  plan_.sequences.clear();
  int32_t budget_rows = options_.chunked_prefill_size;
  const bool all_grown = grow_decodes();
  plan_decodes();
  plan_chunks(budget_rows);
  if (all_grown) admit_waiting(budget_rows);
  WINNOW_CHECK(!plan_.batch.slices.empty() || !has_work(), "{} waiting, {} running",
               waiting_.size(), running_.size());
  return plan_;
}

// False when some sequence had to be preempted.
bool Scheduler::grow_decodes() {
  const int64_t before = num_preemptions_;
  for (size_t i = 0; i < running_.size();) {
    Sequence& s = *running_[i];
    if (reserve_pages(s, pages_for(s.tokens.size()))) {
      ++i;
    } else {
      WINNOW_CHECK(running_.size() > 1, "{} tokens do not fit an empty pool", s.tokens.size());
      preempt_youngest();
    }
  }
  return num_preemptions_ == before;
}

void Scheduler::plan_decodes() {
  for (auto& s : running_) {
    if (s->state == SequenceState::kDecoding) {
      plan_slice(*s, static_cast<int32_t>(s->tokens.size()) - s->kv_len);
    }
  }
}

void Scheduler::plan_chunks(int32_t& budget_rows) {
  for (auto& s : running_) {
    if (budget_rows == 0) return;
    if (s->state != SequenceState::kPrefilling) continue;
    const auto num_tokens = static_cast<int32_t>(s->tokens.size());
    // A full hit leaves nothing to write, but the next token needs the last row (fault B46).
    const int32_t num_rows = std::min(std::max(num_tokens - s->kv_len, 1), budget_rows);
    plan_slice(*s, num_rows);
    budget_rows -= num_rows;
  }
}

void Scheduler::plan_slice(Sequence& s, int32_t num_rows) {
  const auto num_tokens = static_cast<int32_t>(s.tokens.size());
  const int32_t start = std::min(s.kv_len, num_tokens - 1);
  SequenceSlice slice;
  slice.sequence_idx = s.slot;
  slice.request = &s.request;
  slice.tokens = s.tokens;
  slice.start = start;
  slice.num_tokens = num_rows;
  slice.write_from = s.kv_len;
  slice.pages = s.pages;
  slice.sample = start + num_rows == num_tokens && s.num_generated() < s.max_new_tokens;
  // Row i scores token i + 1; what comes before the last prompt token has been scored by then.
  if (s.next_prompt_logprob >= 0 && s.next_prompt_logprob < s.num_prompt()) {
    slice.prompt_logprobs_from = std::max<int64_t>(s.next_prompt_logprob, 1);
  }
  plan_.batch.slices.push_back(slice);
  plan_.batch.num_rows += num_rows;
  plan_.sequences.push_back(&s);
}

void Scheduler::admit_waiting(int32_t& budget_rows) {
  while (budget_rows > 0 && !waiting_.empty() && !free_slots_.empty()) {
    if (!admit(*waiting_.front())) return;
    running_.push_back(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
    Sequence& s = *running_.back();
    const int32_t num_rows =
        std::min(std::max(static_cast<int32_t>(s.tokens.size()) - s.kv_len, 1), budget_rows);
    plan_slice(s, num_rows);
    budget_rows -= num_rows;
  }
}

// What a prefix hit may cover of a sequence's tokens.
std::span<const int32_t> Scheduler::cacheable_tokens(const Sequence& s) const {
  std::span<const int32_t> tokens = s.tokens;
  // The row before the first prompt token to score must be computed (fault B115).
  if (s.next_prompt_logprob >= 0 && s.next_prompt_logprob < s.num_prompt()) {
    tokens = tokens.first(static_cast<size_t>(std::max<int64_t>(s.next_prompt_logprob - 1, 0)));
  }
  return tokens;
}

// Whether a running prompt is about to compute more of these tokens than the cache has by now: the
// choices of one request, or many questions behind one long text, would all compute the same.
bool Scheduler::will_be_cached(const Sequence& s, int32_t num_cached_pages) const {
  const auto tokens = cacheable_tokens(s);
  const size_t wanted =
      (static_cast<size_t>(num_cached_pages) + 1) * static_cast<size_t>(options_.page_size);
  if (tokens.size() < wanted) return false;
  return std::any_of(running_.begin(), running_.end(), [&](const auto& r) {
    return r->state == SequenceState::kPrefilling && r->tokens.size() >= wanted &&
           r->request.cache_namespace == s.request.cache_namespace &&
           std::equal(tokens.begin(), tokens.begin() + static_cast<int64_t>(wanted),
                      r->tokens.begin());
  });
}

bool Scheduler::admit(Sequence& s) {
  kv::PrefixMatch match;
  if (options_.prefix_cache) {
    match = tree_.match_prefix(s.request.cache_namespace, cacheable_tokens(s), s.pages);
    if (will_be_cached(s, match.num_pages)) {
      s.pages.clear();
      return false;
    }
    tree_.lock(s.pages);
  }
  const int32_t num_missing = pages_for(s.tokens.size()) - match.num_pages;
  // A page for each running sequence's next tokens, or the newcomer would be preempted at once.
  const auto num_spare = static_cast<int32_t>(running_.size());
  if (num_missing + num_spare > num_available_pages()) {
    tree_.unlock(s.pages);
    s.pages.clear();
    return false;
  }
  WINNOW_CHECK(reserve_pages(s, match.num_pages + num_missing), "{} pages", num_missing);
  s.num_tree_pages = match.num_pages;
  s.kv_len = match.num_pages * options_.page_size + match.copy_tokens;
  if (match.copy_tokens > 0) {
    // Its source may just have become one of our own pages; the content is there until run().
    const int32_t to_page = s.pages[static_cast<size_t>(match.num_pages)];
    if (to_page != match.copy_page) {
      plan_.copies.push_back({match.copy_page, to_page, match.copy_tokens});
    }
  }
  s.slot = free_slots_.back();
  free_slots_.pop_back();
  s.state = SequenceState::kPrefilling;
  if (!s.was_admitted) {
    s.was_admitted = true;
    s.cached_tokens = std::min<int64_t>(s.kv_len, s.num_prompt() - 1);
    cached_tokens_ += s.cached_tokens;
  }
  return true;
}

void Scheduler::update(std::span<SliceResult> results) {
  const auto& slices = plan_.batch.slices;
  WINNOW_CHECK(results.size() == slices.size(), "{} results of {} slices", results.size(),
               slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    update_sequence(*plan_.sequences[i], slices[i], results[i]);
  }
}

void Scheduler::update_sequence(Sequence& s, const SequenceSlice& slice, SliceResult& result) {
  if (!result.error.ok()) {
    end(s.id, FinishReason::kError, std::move(result.error));
    return;
  }
  s.kv_len = std::max(s.kv_len, slice.start + slice.num_tokens);
  collect_prompt_logprobs(s, slice, result);
  const bool prefilled = slice.start + slice.num_tokens == static_cast<int32_t>(s.tokens.size());
  if (s.state == SequenceState::kPrefilling) {
    // Whole pages only: the rest of the last page is still to be written.
    cache_pages(s, s.kv_len / options_.page_size * options_.page_size);
    if (!prefilled) return;
    s.state = SequenceState::kDecoding;
  }
  if (!slice.sample) {
    end(s.id, FinishReason::kLength, {});  // max_new_tokens 0
    return;
  }
  WINNOW_CHECK(!result.ids.empty(), "no token sampled for {}", s.request.rid);
  std::span<TokenLogprob> logprobs;
  if (s.request.logprobs.output) {
    WINNOW_CHECK(result.logprobs.size() == result.ids.size(), "{} logprobs of {} tokens",
                 result.logprobs.size(), result.ids.size());
    logprobs = result.logprobs;
  }
  append_tokens(s, result.ids, eos_ids_, logprobs);
  if (s.finish != FinishReason::kNone) {
    end(s.id, s.finish, {});
  } else {
    mark_updated(s);
  }
}

void Scheduler::collect_prompt_logprobs(Sequence& s,
                                        const SequenceSlice& slice,
                                        SliceResult& result) {
  const int64_t from = slice.prompt_logprobs_from;
  if (from < 0) return;
  const int64_t first = std::max<int64_t>(from, slice.start + 1);
  const int64_t end = std::min<int64_t>(slice.start + slice.num_tokens + 1, s.num_prompt());
  const int64_t expected = std::max<int64_t>(end - first, 0);
  WINNOW_CHECK(static_cast<int64_t>(result.prompt_logprobs.size()) == expected,
               "{} prompt logprobs for tokens {} to {}", result.prompt_logprobs.size(), first, end);
  if (s.next_prompt_logprob == 0) {
    TokenLogprob none;
    none.id = s.tokens[0];
    none.logprob = std::numeric_limits<float>::quiet_NaN();
    s.prompt_logprobs.push_back(std::move(none));
  }
  std::move(result.prompt_logprobs.begin(), result.prompt_logprobs.end(),
            std::back_inserter(s.prompt_logprobs));
  s.next_prompt_logprob = std::max(from, end);
}

void Scheduler::end(uint64_t id, FinishReason reason, Status error) {
  for (Sequences* sequences : {&running_, &waiting_}) {
    const size_t idx = find_sequence(*sequences, id);
    if (idx < sequences->size()) {
      end_at(*sequences, idx, reason, std::move(error));
      return;
    }
  }
}

void Scheduler::end_all(FinishReason reason, const Status& error) {
  while (!running_.empty()) end_at(running_, 0, reason, error);
  while (!waiting_.empty()) end_at(waiting_, 0, reason, error);
}

void Scheduler::end_at(Sequences& from, size_t idx, FinishReason reason, Status error) {
  Sequence& s = *from[idx];
  if (s.state != SequenceState::kWaiting) release(s, reason != FinishReason::kError);
  s.state = SequenceState::kEnded;
  s.finish = reason;
  s.error = std::move(error);
  mark_updated(s);
  ended_.push_back(std::move(from[idx]));
  from.erase(from.begin() + static_cast<int64_t>(idx));
}

void Scheduler::preempt_youngest() {
  std::unique_ptr<Sequence> s = std::move(running_.back());
  running_.pop_back();
  release(*s, true);
  s->state = SequenceState::kWaiting;
  ++s->num_preemptions;
  ++num_preemptions_;
  // Older than everything that waits: running sequences were admitted in order of arrival.
  waiting_.insert(waiting_.begin(), std::move(s));
}

void Scheduler::release(Sequence& s, bool keep_in_cache) {
  if (keep_in_cache) cache_pages(s, s.kv_len);
  tree_.unlock(s.pages);
  s.pages.clear();
  s.num_tree_pages = 0;
  s.kv_len = 0;
  free_slots_.push_back(s.slot);
  s.slot = -1;
}

bool Scheduler::reserve_pages(Sequence& s, int32_t num_pages) {
  const int32_t num_missing = num_pages - static_cast<int32_t>(s.pages.size());
  if (num_missing > num_available_pages()) return false;
  if (num_missing > pool_.num_free()) tree_.evict(num_missing - pool_.num_free());
  for (int32_t i = 0; i < num_missing; ++i) {
    const int32_t page = pool_.allocate();
    WINNOW_CHECK(page >= 0, "{} free, {} evictable", pool_.num_free(), tree_.num_evictable());
    s.pages.push_back(page);
  }
  return true;
}

// The first num_tokens tokens of the sequence have their KV, and those pages stay as they are.
void Scheduler::cache_pages(Sequence& s, int32_t num_tokens) {
  if (!options_.prefix_cache || num_tokens <= s.num_tree_pages * options_.page_size) return;
  const int32_t num_pages = pages_for(static_cast<size_t>(num_tokens));
  tree_.insert_prefix(s.request.cache_namespace,
                      std::span(s.tokens).first(static_cast<size_t>(num_tokens)),
                      std::span(s.pages).first(static_cast<size_t>(num_pages)), s.num_tree_pages);
  s.num_tree_pages = num_pages;
}

int32_t Scheduler::pages_for(size_t num_tokens) const {
  const auto page_size = static_cast<size_t>(options_.page_size);
  return static_cast<int32_t>((num_tokens + page_size - 1) / page_size);
}

void Scheduler::mark_updated(Sequence& s) {
  if (!s.is_updated) updated_.push_back(&s);
  s.is_updated = true;
}

void Scheduler::clear_updated() {
  for (Sequence* s : updated_) s->is_updated = false;
  updated_.clear();
  ended_.clear();
}

bool Scheduler::flush_cache() {
  if (has_work()) return false;
  tree_.evict(pool_.num_pages());
  return true;
}

std::string Scheduler::check_integrity() const {
  if (std::string wrong = tree_.check_integrity(); !wrong.empty()) return wrong;
  std::vector<int32_t> expected(static_cast<size_t>(pool_.num_pages()));
  for (const auto& s : running_) {
    if (s->slot < 0) return fmt::format("sequence {} runs without a slot", s->id);
    for (int32_t page : s->pages) ++expected[static_cast<size_t>(page)];
  }
  for (const auto& s : waiting_) {
    if (!s->pages.empty()) return fmt::format("sequence {} waits with pages", s->id);
  }
  for (int32_t page = 0; page < pool_.num_pages(); ++page) {
    const int32_t users = expected[static_cast<size_t>(page)] + (tree_.contains(page) ? 1 : 0);
    if (users != pool_.num_references(page)) {
      return fmt::format("page {} has {} references and {} users", page, pool_.num_references(page),
                         users);
    }
  }
  if (free_slots_.size() + running_.size() != static_cast<size_t>(options_.max_running_requests)) {
    return fmt::format("{} slots free, {} running", free_slots_.size(), running_.size());
  }
  return "";
}

}  // namespace winnow::engine
