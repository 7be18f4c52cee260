// Answers of /generate: {text, output_ids, meta_info}, a list of them, or events.
#pragma once

#include <memory>
#include <vector>

#include "server/generation.h"

namespace winnow::server {

struct NativeAnswerPlan {
  int32_t num_sequences = 1;
  bool batch = false;
  bool stream = false;
  bool incremental = false;  // events carry differences instead of everything so far
  bool return_logprob = false;
  bool logprob_text = false;  // [logprob, id, text] instead of [logprob, id, null]
  bool top_logprobs = false;
  bool requested_logprobs = false;
  std::vector<std::vector<int32_t>> prompt_ids;  // by sequence, where they are to be returned
  int64_t received_ns = 0;
};

std::unique_ptr<AnswerWriter> make_native_answer(const Api& api,
                                                 std::shared_ptr<Exchange> exchange,
                                                 NativeAnswerPlan plan);

}  // namespace winnow::server
