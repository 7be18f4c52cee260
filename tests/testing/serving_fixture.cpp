#include "testing/serving_fixture.h"

#include <charconv>
#include <chrono>
#include <thread>

namespace winnow::testing {
namespace {

server::ServerConfig with_vocab(server::ServerConfig config, int64_t vocab_size) {
  if (config.vocab_size == 0) config.vocab_size = vocab_size;
  return config;
}

}  // namespace

ServingFixture::ServingFixture(ScriptedExecutor::Writer writer, ServingOptions options)
    : tokenizer_(options.words) {
  auto executor = std::make_unique<ScriptedExecutor>(std::move(writer),
                                                     std::vector<int32_t>{ByteTokenizer::kEos});
  executor_ = executor.get();
  engine_ = std::make_unique<engine::Engine>(options.engine, std::move(executor), clock_);
  api_ = std::make_unique<server::Api>(with_vocab(options.config, tokenizer_.vocab_size()),
                                       *engine_, tokenizer_, &chat_format_, clock_);
  router_ = std::make_unique<server::Router>(*api_);
  options.http.port = 0;
  http_ = std::make_unique<server::HttpServer>(
      options.http,
      [this](server::HttpRequest request, const std::shared_ptr<server::Exchange>& exchange) {
        router_->handle(std::move(request), exchange);
      });
  api_->state = server::ServerState::kReady;
  http_->start();
}

ServingFixture::ServingFixture(Script script, ServingOptions options)
    : ServingFixture([script](const engine::GenerateRequest&) { return script; },
                     std::move(options)) {}

ServingFixture::~ServingFixture() {
  executor_->release();
  http_->stop();
  engine_->stop(0);
}

HttpReply ServingFixture::post(std::string_view target,
                               std::string_view body,
                               std::string_view extra_headers) {
  return http_post(port(), target, body, extra_headers);
}

HttpReply ServingFixture::get(std::string_view target, std::string_view extra_headers) {
  return http_get(port(), target, extra_headers);
}

bool ServingFixture::quiet() {
  return eventually([&] {
    const engine::EngineStats stats = engine_->stats();
    return stats.num_running == 0 && stats.num_queued == 0 && api_->live.size() == 0 &&
           stats.free_pages + stats.cached_pages == stats.total_pages &&
           http_->stats().open_exchanges == 0;
  });
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

Script text_script(std::string_view text, std::vector<int32_t> step_sizes) {
  return {.ids = ByteTokenizer().encode(text, text::ControlTokens::kParse),
          .step_sizes = std::move(step_sizes)};
}

const json::Value& at(const json::Value& value, std::string_view path) {
  static const json::Value kNull;
  const json::Value* here = &value;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    const std::string_view key = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (here->is_array()) {
      size_t idx = here->as_array().size();
      std::from_chars(key.data(), key.data() + key.size(), idx);
      if (idx >= here->as_array().size()) return kNull;
      here = &here->as_array()[idx];
    } else {
      here = here->find(key);
      if (here == nullptr) return kNull;
    }
  }
  return *here;
}

std::string joined_deltas(const std::vector<std::string>& events, std::string_view path) {
  std::string out;
  for (const std::string& event : events) {
    auto parsed = json::parse(event);
    if (!parsed.ok()) continue;
    const json::Value& text = at(parsed.value(), path);
    if (text.is_string()) out += text.as_string();
  }
  return out;
}

}  // namespace winnow::testing
