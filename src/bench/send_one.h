// One request (or one batch) and how fast it was, by the server's own clock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "bench/http_message.h"

namespace winnow::bench {

struct SendOneOptions {
  Url url;
  HttpHeaders headers;
  int64_t batch_size = 1;
  bool different_prompts = false;  // "Test case i: " in front
  double temperature = 0;
  int64_t max_new_tokens = 512;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  bool json = false;  // asks for JSON about Paris, with the grammar of any object
  bool return_logprob = false;
  std::string prompt;  // "": a FastAPI server is asked for
  bool stream = false;
  double timeout_s = 6 * 3600;
};

struct SendOneResult {
  std::string text;
  double latency_s = 0;  // meta_info.e2e_latency; without it, the client's
  int64_t num_tokens = 0;
  double accept_length = 1;
  double tokens_per_s = 0;
};

json::Value send_one_body(const SendOneOptions& options);
// From the first item of the answer.
SendOneResult read_send_one(const json::Value& item, double client_seconds);

// on_text: increments where it streams. Throws Error with what the server said.
SendOneResult send_one(const SendOneOptions& options,
                       const std::function<void(std::string_view)>& on_text);

// A "+---+" grid, cells centred.
std::string send_one_table(const SendOneResult& result);

}  // namespace winnow::bench
