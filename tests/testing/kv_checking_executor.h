// An executor whose "KV cache" remembers what was written where, so that any fault of pages shows.
//
// Each slot keeps a hash over the whole sequence up to its token. A row reads the slot before it,
// and before each step every slot that a sequence can see is compared with the hash of its tokens.
// The next token is a hash of the whole sequence, so one wrong page changes all that follows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/executor.h"

namespace winnow::testing {

struct KvCheckOptions {
  int32_t vocab_size = 50;
  int32_t max_ids_per_step = 1;  // the next 1 to so many ids, by the sequence's hash
  std::vector<int32_t> eos_ids = {0};
};

class KvCheckingExecutor final : public engine::Executor {
 public:
  KvCheckingExecutor(const engine::EngineOptions& options, KvCheckOptions check);

  void run(const engine::BatchPlan& plan, std::span<engine::SliceResult> results) override;
  void copy_tokens(int32_t from_page, int32_t to_page, int32_t num_tokens) override;
  std::span<const int32_t> eos_ids() const override { return check_.eos_ids; }

  // "" or the first fault seen.
  const std::string& fault() const { return fault_; }
  int64_t num_rows() const { return num_rows_; }
  int64_t num_copies() const { return num_copies_; }

 private:
  uint64_t& slot(const engine::SequenceSlice& slice, int32_t position);
  void check_plan(const engine::BatchPlan& plan);
  void check_visible(const engine::SequenceSlice& slice);
  void write_rows(const engine::SequenceSlice& slice);
  void sample(const engine::SequenceSlice& slice, engine::SliceResult& result) const;
  void report(std::string fault);

  const engine::EngineOptions options_;
  const KvCheckOptions check_;
  std::vector<uint64_t> memory_;  // [num_pages, page_size]
  std::string fault_;
  int64_t num_rows_ = 0;
  int64_t num_copies_ = 0;
};

// What the executor generates for a prompt when nothing disturbs it, stops and limits applied.
std::vector<int32_t> expected_answer(const KvCheckOptions& check,
                                     const engine::GenerateRequest& request,
                                     int64_t max_new_tokens);

}  // namespace winnow::testing
