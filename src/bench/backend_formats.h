// How each kind of server wants to be asked: one row a --backend name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::bench {

enum class ApiKind { kNative, kCompletions, kChat };

struct BackendFormat {
  std::string_view name;
  ApiKind kind;
  int default_port;
  std::string_view flush_target;  // "": cannot be told to drop its prefix cache
  bool counts_as_it_streams;      // takes stream_options.continuous_usage_stats
  bool says_its_state;            // has /server_info and /model_info

  std::string_view target() const;
};

std::span<const BackendFormat> backend_formats();
// nullptr for a name that is in no row.
const BackendFormat* find_backend(std::string_view name);

// A prompt of a data set.
struct PromptRow {
  std::string text;
  std::vector<int32_t> ids;  // where not empty, sent in place of the text
  json::Value messages;      // where not null, a chat in place of the text
  // Of a conversation: what the user says behind each answer. Chats only.
  std::vector<std::string> later_turns;
  std::vector<int64_t> later_lens;  // tokens of each, without what stands before it
  int64_t prompt_len = 0;           // tokens, with those that the server puts in front
  int64_t output_len = 0;
  double arrival_s = 0;  // of a trace
};

struct RequestOptions {
  std::string model;
  bool stream = true;
  bool ignore_eos = true;
  double temperature = 0;
  double top_p = 1;
  json::Object extra;  // --extra-request-body: replaces what is there
};

// The body of the request, as JSON text.
std::string request_body(const BackendFormat& format,
                         const PromptRow& row,
                         const RequestOptions& options);

}  // namespace winnow::bench
