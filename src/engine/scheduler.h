// Which rows run in a step, and on which pages. Pure: no threads, no clock, no model.
//
// One step is schedule(), the executor's run, update(); cancel() and finish() come between steps.
// First come, first served, with one order of arrival for everything: the waiting queue has no
// overtaking, running decodes get their rows first, prompt chunks share what chunked_prefill_size
// leaves in order of arrival, and when a decode finds no page the youngest running sequence is
// preempted. So the oldest always gets on, and nothing waits for ever: what could not run alone in
// an empty pool is refused by check_fits() (fault B49).
//
// A preempted or ended sequence leaves its computed pages to the prefix cache, from which they are
// evicted as others need them. A sequence gets pages for all its tokens when it is admitted, in
// whole pages, so its chunks cannot run out of them (fault B50).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/sequence.h"
#include "kv/page_pool.h"
#include "kv/radix_tree.h"

namespace winnow::engine {

struct PageCopy {
  int32_t from_page = 0;
  int32_t to_page = 0;
  int32_t num_tokens = 0;
};

struct StepPlan {
  // To be done in this order before the batch writes anything: a source may be a page that the
  // same plan has handed to a later sequence.
  std::vector<PageCopy> copies;
  BatchPlan batch;
  std::vector<Sequence*> sequences;  // of batch.slices
};

class Scheduler {
 public:
  Scheduler(const EngineOptions& options, std::vector<int32_t> eos_ids);

  // kInvalidArgument for what can never run. Any thread.
  static Status check_fits(const EngineOptions& options, const GenerateRequest& request);

  // Takes a sequence with id and request set; ids must grow from call to call.
  void add(std::unique_ptr<Sequence> sequence);
  // Plans a step; its batch is empty only when there is no work. Valid until the next call.
  const StepPlan& schedule();
  // The results of the batch, in slice order; their logprobs are moved out.
  void update(std::span<SliceResult> results);

  // Ends a sequence, waiting or running, and returns its pages. Unknown ids are ignored.
  void end(uint64_t id, FinishReason reason, Status error);
  void end_all(FinishReason reason, const Status& error);

  // Sequences with something to deliver since clear_updated(); each once.
  const std::vector<Sequence*>& updated() const { return updated_; }
  // Forgets the list and destroys the ended sequences.
  void clear_updated();

  // False while anything waits or runs.
  bool flush_cache();

  bool has_work() const { return !waiting_.empty() || !running_.empty(); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_preemptions() const { return num_preemptions_; }
  int64_t cached_tokens() const { return cached_tokens_; }  // total over first admissions
  int32_t num_free_pages() const { return pool_.num_free(); }
  int32_t num_evictable_pages() const { return tree_.num_evictable(); }
  std::span<const int32_t> eos_ids() const { return eos_ids_; }

  // "" when every page is free, cached or held by exactly the sequences that say so.
  std::string check_integrity() const;

 private:
  using Sequences = std::vector<std::unique_ptr<Sequence>>;  // in order of arrival

  bool grow_decodes();
  void plan_decodes();
  void plan_chunks(int32_t& budget_rows);
  void admit_waiting(int32_t& budget_rows);
  bool admit(Sequence& sequence);
  std::span<const int32_t> cacheable_tokens(const Sequence& sequence) const;
  bool will_be_cached(const Sequence& sequence, int32_t num_cached_pages) const;
  void plan_slice(Sequence& sequence, int32_t num_rows);
  void update_sequence(Sequence& sequence, const SequenceSlice& slice, SliceResult& result);
  void collect_prompt_logprobs(Sequence& sequence, const SequenceSlice& slice, SliceResult& result);
  void preempt_youngest();
  void end_at(Sequences& from, size_t idx, FinishReason reason, Status error);
  void release(Sequence& sequence, bool keep_in_cache);
  bool reserve_pages(Sequence& sequence, int32_t num_pages);
  void cache_pages(Sequence& sequence, int32_t num_tokens);
  int32_t pages_for(size_t num_tokens) const;
  int32_t num_available_pages() const { return pool_.num_free() + tree_.num_evictable(); }
  void mark_updated(Sequence& sequence);

  const EngineOptions options_;
  const std::vector<int32_t> eos_ids_;
  kv::PagePool pool_;
  kv::RadixTree tree_;
  Sequences waiting_;
  Sequences running_;
  Sequences ended_;
  std::vector<int32_t> free_slots_;
  StepPlan plan_;
  std::vector<Sequence*> updated_;
  int64_t num_preemptions_ = 0;
  int64_t cached_tokens_ = 0;
};

}  // namespace winnow::engine
