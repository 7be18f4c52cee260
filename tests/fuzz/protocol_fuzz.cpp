// Any bytes as the body of every endpoint, through the router and a whole engine that answers
// from a script: each request gets exactly one complete answer. The first byte picks the endpoint.
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/log.h"
#include "engine/engine.h"
#include "server/api.h"
#include "server/http_exchange.h"
#include "server/router.h"
#include "testing/byte_tokenizer.h"
#include "testing/plain_chat_format.h"
#include "testing/scripted_executor.h"

namespace {

using namespace winnow;

struct Served {
  SteadyClock clock;
  testing::ByteTokenizer tokenizer;
  testing::PlainChatFormat chat_format;
  engine::Engine engine{{.max_running_requests = 64,
                         .max_queued_requests = 64,
                         .page_size = 16,
                         .num_pages = 256,
                         .context_length = 256},
                        std::make_unique<testing::ScriptedExecutor>(
                            testing::Script{.ids = testing::byte_ids("why</think>ok")},
                            std::vector<int32_t>{testing::ByteTokenizer::kEos}),
                        clock};
  server::Api api{config(), engine, tokenizer, &chat_format, clock};
  server::Router router{api};

  Served() {
    log::setup("error");
    api.state = server::ServerState::kReady;
  }
  static server::ServerConfig config() {
    server::ServerConfig config;
    config.vocab_size = testing::ByteTokenizer().vocab_size();
    config.reasoning_parser = "glm45";
    config.tokenizer_workers = 1;
    return config;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Served served;
  static constexpr const char* kPaths[] = {
      "/v1/chat/completions", "/v1/completions", "/generate", "/tokenize",
      "/detokenize",          "/abort_request"};
  if (size == 0) return 0;
  server::HttpRequest request;
  request.method = "POST";
  request.path = kPaths[data[0] % std::size(kPaths)];
  request.headers = {{"content-type", "application/json"}};
  request.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto exchange = std::make_shared<server::HttpExchange>(server::AnswerFraming{}, 1 << 30, [] {});
  served.router.handle(std::move(request), exchange);
  // An answer that does not come is libFuzzer's timeout.
  while (!exchange->take().complete) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return 0;
}
