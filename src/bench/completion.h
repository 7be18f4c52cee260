// A whole answer of /generate, /v1/chat/completions or /v1/completions, in one form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace winnow::bench {

struct Completion {
  std::string text;       // of the first choice
  std::string reasoning;  // reasoning_content, or reasoning
  std::string finish_reason;
  // -1: the server does not say.
  int64_t prompt_tokens = -1;
  int64_t completion_tokens = -1;
  int64_t cached_tokens = -1;
  int64_t reasoning_tokens = -1;
  double server_seconds = -1;  // meta_info.e2e_latency

  double seconds = 0;  // on the client's clock, from connecting to the last byte
  int status = 0;      // of HTTP; 0: there was no answer
  std::string error;   // "" when the answer is whole and no error
  json::Value body;    // all of it; for a batch an array, of which the fields above are the first

  bool ok() const { return error.empty(); }
};

// The three forms are told apart by their keys; anything else is an error.
Completion read_completion(int status, std::string_view body);

}  // namespace winnow::bench
