#include "bench/backend_formats.h"

namespace winnow::bench {

namespace {

// clang-format off
constexpr BackendFormat kFormats[] = {
    // name             kind                   port   flush                  counts  state
    {"winnow",          ApiKind::kNative,      30000, "/flush_cache",        true,   true},
    {"sglang",          ApiKind::kNative,      30000, "/flush_cache",        true,   true},
    {"sglang-native",   ApiKind::kNative,      30000, "/flush_cache",        true,   true},
    {"sglang-oai",      ApiKind::kCompletions, 30000, "/flush_cache",        true,   true},
    {"sglang-oai-chat", ApiKind::kChat,        30000, "/flush_cache",        true,   true},
    {"vllm",            ApiKind::kCompletions, 8000,  "/reset_prefix_cache", true,   false},
    {"vllm-chat",       ApiKind::kChat,        8000,  "/reset_prefix_cache", true,   false},
    {"openai",          ApiKind::kCompletions, 8000,  "",                    false,  false},
    {"openai-chat",     ApiKind::kChat,        8000,  "",                    false,  false},
};
// clang-format on

json::Value prompt_of(const PromptRow& row) {
  if (row.ids.empty()) return row.text;
  json::Array ids;
  ids.reserve(row.ids.size());
  for (const int32_t id : row.ids) ids.emplace_back(static_cast<int64_t>(id));
  return ids;
}

json::Value native_body(const PromptRow& row, const RequestOptions& options) {
  json::Object sampling = {{"temperature", options.temperature},
                           {"max_new_tokens", row.output_len},
                           {"ignore_eos", options.ignore_eos}};
  if (options.top_p < 1) sampling.emplace_back("top_p", options.top_p);
  return json::Object{{row.ids.empty() ? "text" : "input_ids", prompt_of(row)},
                      {"sampling_params", std::move(sampling)},
                      {"stream", options.stream}};
}

json::Value openai_body(const BackendFormat& format,
                        const PromptRow& row,
                        const RequestOptions& options) {
  json::Object body = {{"model", options.model}};
  if (format.kind == ApiKind::kChat) {
    json::Value messages = row.messages;
    if (messages.is_null()) {
      messages = json::Array{json::Object{{"role", "user"}, {"content", row.text}}};
    }
    body.emplace_back("messages", std::move(messages));
    body.emplace_back("max_completion_tokens", row.output_len);
  } else {
    body.emplace_back("prompt", prompt_of(row));
    body.emplace_back("max_tokens", row.output_len);
  }
  body.emplace_back("temperature", options.temperature);
  if (options.top_p < 1) body.emplace_back("top_p", options.top_p);
  if (options.ignore_eos) body.emplace_back("ignore_eos", true);
  body.emplace_back("stream", options.stream);
  if (options.stream) {
    // Without it an answer that ends early would be counted at the length asked for.
    json::Object stream_options = {{"include_usage", true}};
    if (format.counts_as_it_streams) stream_options.emplace_back("continuous_usage_stats", true);
    body.emplace_back("stream_options", std::move(stream_options));
  }
  return body;
}

}  // namespace

std::string_view BackendFormat::target() const {
  switch (kind) {
    case ApiKind::kNative:
      return "/generate";
    case ApiKind::kCompletions:
      return "/v1/completions";
    case ApiKind::kChat:
      return "/v1/chat/completions";
  }
  return "";
}

std::span<const BackendFormat> backend_formats() { return kFormats; }

const BackendFormat* find_backend(std::string_view name) {
  for (const BackendFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

std::string request_body(const BackendFormat& format,
                         const PromptRow& row,
                         const RequestOptions& options) {
  json::Value body = format.kind == ApiKind::kNative ? native_body(row, options)
                                                     : openai_body(format, row, options);
  for (const auto& [key, value] : options.extra) body.set(key, value);
  return json::dump(body);
}

}  // namespace winnow::bench
