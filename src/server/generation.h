// One HTTP request that generates: its prompts times its choices run as sequences of the engine;
// their events come together here, become text, and go to the writer of the endpoint's format.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/api.h"
#include "server/api_error.h"
#include "server/choice_output.h"

namespace winnow::server {

// What one sequence asks of the engine and of the output side.
struct SequencePlan {
  engine::GenerateRequest request;
  OutputOptions output;
};

struct SequenceState {
  int32_t idx = 0;  // among all sequences: prompt-major
  std::string rid;
  ChoiceOutput output;
  int64_t first_token_ns = 0;  // Clock time, 0 before
  int64_t last_token_ns = 0;
};

// Turns updates into an HTTP answer. Calls come one at a time, from output workers.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // New tokens, or the finish (sequence.output.finished()), or both.
  virtual void on_update(const SequenceState& sequence, const ChoiceDelta& delta) = 0;
  virtual void on_complete() = 0;  // every sequence has finished
  virtual void on_failure(const ApiError& error) = 0;
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  // rid: what the client calls the request; unique among live ones.
  Generation(Api& api,
             std::shared_ptr<Exchange> exchange,
             std::string rid,
             int64_t received_ns,
             bool streaming);
  ~Generation();

  // Submits everything, or nothing: on failure the status says why and the writer is never called.
  Status start(std::vector<SequencePlan> plans, std::unique_ptr<AnswerWriter> writer);
  // The client went away, or an abort call: unfinished sequences end with kAbort.
  void cancel();

 private:
  class Sink;
  struct Incoming {
    int32_t sequence_idx;
    engine::TokenEvent event;
    int64_t arrived_ns;
  };
  void deliver(int32_t sequence_idx, engine::TokenEvent event);
  void schedule_output();
  void write_output();
  void write_one(Incoming incoming);
  void observe(SequenceState& sequence, const ChoiceDelta& delta, int64_t arrived_ns);
  void complete();
  void fail(const Status& status);

  Api& api_;
  const std::shared_ptr<Exchange> exchange_;
  const std::string rid_;
  const int64_t received_ns_;
  const bool streaming_;
  bool registered_ = false;

  // One output job at a time touches these.
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<SequenceState> sequences_;
  size_t num_finished_ = 0;
  bool over_ = false;  // completed or failed: the writer is not called again

  std::mutex mutex_;
  std::vector<Incoming> inbox_;
  bool started_ = false;  // all are submitted: output may begin
  bool output_scheduled_ = false;
  std::vector<std::string> live_rids_;  // of sequences that the engine has not finished
};

}  // namespace winnow::server
