#include "bench/send_one.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "bench/completion.h"
#include "bench/stream_client.h"

namespace winnow::bench {

namespace {

constexpr std::string_view kPrompt =
    "Human: Give me a fully functional FastAPI server. Show the python code.\n\nAssistant:";
constexpr std::string_view kJsonPrompt =
    "Human: What is the capital of France and how is that city like. Give me 3 trivial information "
    "about that city. Write in a format of json.\nAssistant:";
constexpr std::string_view kStops[] = {"Question", "Assistant:", "<|separator|>", "<|eos|>"};

// Reads one answer, streamed or whole.
class OneReader final : public StreamReader {
 public:
  explicit OneReader(const std::function<void(std::string_view)>& on_text) : on_text_(on_text) {}

  void on_start(int64_t now_ns) override { start_ns_ = now_ns; }

  void on_event(std::string_view data, int64_t /*received_ns*/) override {
    if (data == "[DONE]" || !error_.empty()) return;
    Completion event = read_completion(200, data);
    if (!event.ok()) {
      error_ = std::move(event.error);
      return;
    }
    // Of a batch only the first item is shown.
    const json::Value* index = event.body.find("index");
    if (index != nullptr && index->is_integer() && index->as_integer() != 0) return;
    const bool cumulative = event.text.starts_with(text_);
    on_text_(std::string_view(event.text).substr(cumulative ? text_.size() : 0));
    text_ = cumulative ? event.text : text_ + event.text;
    item_ = std::move(event.body);
  }

  void on_end(StreamEnd end) override {
    if (error_.empty()) error_ = std::move(end.error);
    seconds_ = static_cast<double>(end.end_ns - start_ns_) * 1e-9;
    if (!error_.empty() || !item_.is_null()) return;
    Completion whole = read_completion(end.reply.status, end.reply.body);
    error_ = std::move(whole.error);
    text_ = std::move(whole.text);
    item_ = whole.body.is_array() && !whole.body.as_array().empty() ? whole.body.as_array().front()
                                                                    : std::move(whole.body);
  }

  SendOneResult result() const {
    if (!error_.empty()) throw_error("{}", error_);
    SendOneResult result = read_send_one(item_, seconds_);
    result.text = text_;
    return result;
  }

 private:
  const std::function<void(std::string_view)>& on_text_;
  int64_t start_ns_ = 0;
  double seconds_ = 0;
  std::string text_;
  json::Value item_;
  std::string error_;
};

std::string centred(std::string_view text, size_t width) {
  const size_t left = (width - text.size()) / 2;  // odd padding goes right
  return std::string(left, ' ') + std::string(text) + std::string(width - text.size() - left, ' ');
}

}  // namespace

json::Value send_one_body(const SendOneOptions& options) {
  std::string prompt(options.json ? kJsonPrompt : kPrompt);
  if (!options.prompt.empty() && !options.json) prompt = options.prompt;
  json::Value text = prompt;
  if (options.batch_size > 1) {
    json::Array prompts;
    for (int64_t i = 0; i < options.batch_size; ++i) {
      prompts.emplace_back(
          (options.different_prompts ? fmt::format("Test case {}: ", i + 1) : std::string()) +
          prompt);
    }
    text = std::move(prompts);
  }
  json::Object sampling = {{"temperature", options.temperature},
                           {"max_new_tokens", options.max_new_tokens},
                           {"frequency_penalty", options.frequency_penalty},
                           {"presence_penalty", options.presence_penalty},
                           {"stop", json::Array(std::begin(kStops), std::end(kStops))}};
  if (options.json) sampling.emplace_back("json_schema", "$$ANY$$");
  return json::Object{{"text", std::move(text)},
                      {"sampling_params", std::move(sampling)},
                      {"return_logprob", options.return_logprob},
                      {"stream", options.stream}};
}

SendOneResult read_send_one(const json::Value& item, double client_seconds) {
  const auto number = [meta = item.find("meta_info")](const char* key) {
    const json::Value* value = meta == nullptr ? nullptr : meta->find(key);
    return value != nullptr && value->is_number() ? value->as_number() : 0.0;
  };
  SendOneResult result;
  const double latency_s = number("e2e_latency");
  result.latency_s = latency_s > 0 ? latency_s : client_seconds;
  const double tokens = number("completion_tokens");
  result.num_tokens = static_cast<int64_t>(tokens);
  if (number("spec_verify_ct") > 0) result.accept_length = tokens / number("spec_verify_ct");
  if (result.latency_s > 0) result.tokens_per_s = tokens / result.latency_s;
  return result;
}

SendOneResult send_one(const SendOneOptions& options,
                       const std::function<void(std::string_view)>& on_text) {
  StreamClient client(
      {.url = options.url, .headers = options.headers, .timeout_s = options.timeout_s});
  auto reader = std::make_shared<OneReader>(on_text);
  client.start({.target = "/generate", .body = json::dump(send_one_body(options))}, reader);
  client.wait();
  return reader->result();
}

std::string send_one_table(const SendOneResult& result) {
  const std::array<std::string, 4> titles = {"Latency (s)", "Tokens", "Acc Length",
                                             "Speed (token/s)"};
  const std::array<std::string, 4> cells = {
      fmt::format("{:.3f}", result.latency_s), std::to_string(result.num_tokens),
      fmt::format("{:.3f}", result.accept_length), fmt::format("{:.2f}", result.tokens_per_s)};
  std::string rule = "+";
  std::string head = "|";
  std::string row = "|";
  for (size_t i = 0; i < titles.size(); ++i) {
    const size_t width = std::max(titles[i].size(), cells[i].size()) + 2;
    rule += std::string(width, '-') + "+";
    head += centred(titles[i], width) + "|";
    row += centred(cells[i], width) + "|";
  }
  return rule + "\n" + head + "\n" + rule + "\n" + row + "\n" + rule + "\n";
}

}  // namespace winnow::bench
