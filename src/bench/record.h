// What one request was and what came back, with times: all that metrics are made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow::bench {

// An event that brought tokens. num_tokens > 0: what the server says is new with it; 1 for a delta
// whose count it does not say.
struct TokenEvent {
  int64_t received_ns = 0;
  int32_t num_tokens = 1;
};

// Times are of one steady clock, 0 where it never came to that.
struct RequestRecord {
  // What was planned.
  int64_t prompt_len = 0;  // tokens the prompt was made with
  int64_t output_len = 0;  // tokens asked for
  int64_t due_ns = 0;      // its arrival; it starts later where the concurrency limit holds it back

  // What came.
  int64_t start_ns = 0;       // just before connecting
  int64_t first_text_ns = 0;  // first event with text or reasoning that is not empty
  int64_t last_event_ns = 0;  // [DONE] included; without a stream, the last byte
  int64_t end_ns = 0;         // last byte, or the failure
  std::vector<TokenEvent> events;

  // What the server says; -1 where it does not.
  int64_t served_prompt_tokens = -1;
  int64_t completion_tokens = -1;
  int64_t cached_tokens = -1;
  double accept_length = -1;

  std::string text;             // reasoning in front of content
  int64_t num_retokenized = 0;  // tokens of text, encoded again
  std::string finish_reason;
  std::string error;         // "" where the request succeeded
  bool interrupted = false;  // the run was stopped before it was sent or had ended

  bool ok() const { return error.empty(); }
  // The server's count; where there is none, what the text encodes to, or else the tokens seen.
  int64_t num_output_tokens() const;
  // The server's count, else the planned one.
  int64_t num_prompt_tokens() const {
    return served_prompt_tokens >= 0 ? served_prompt_tokens : prompt_len;
  }
};

// Seconds from the start to the first event with tokens, whatever they were: text, reasoning, a
// tool call, or a token that shows nothing. The whole latency where no event brought any.
double ttft_s(const RequestRecord& record);
// Seconds from the start to the last event.
double latency_s(const RequestRecord& record);
// Gaps between tokens: an event with k tokens gives its gap / k, k times; those of the first event
// give none. Appends.
void append_itls(const RequestRecord& record, std::vector<double>& itls_s);
// When each token came, tokens of one event spread evenly over the gap before it. Appends.
void append_token_times(const RequestRecord& record, std::vector<int64_t>& times_ns);

}  // namespace winnow::bench
