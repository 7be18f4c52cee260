// A whole server over a scripted executor, on a free port of 127.0.0.1.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "server/api.h"
#include "server/http_server.h"
#include "server/router.h"
#include "testing/byte_tokenizer.h"
#include "testing/http_client.h"
#include "testing/plain_chat_format.h"
#include "testing/scripted_executor.h"

namespace winnow::testing {

struct ServingOptions {
  server::ServerConfig config = {};
  engine::EngineOptions engine = {.max_running_requests = 64,
                                  .max_queued_requests = 4096,
                                  .chunked_prefill_size = 4096,
                                  .page_size = 16,
                                  .num_pages = 4096,
                                  .context_length = 8192};
  server::HttpServerOptions http = {};
  std::vector<std::string> words = {};  // tokens from ByteTokenizer::kFirstWord on
};

class ServingFixture {
 public:
  ServingFixture(ScriptedExecutor::Writer writer, ServingOptions options = {});
  // The same script for everyone.
  explicit ServingFixture(Script script, ServingOptions options = {});
  ~ServingFixture();

  int port() const { return http_->port(); }
  server::Api& api() { return *api_; }
  engine::Engine& engine() { return *engine_; }
  ScriptedExecutor& executor() { return *executor_; }
  server::HttpServer& http() { return *http_; }

  HttpReply post(std::string_view target,
                 std::string_view body,
                 std::string_view extra_headers = "");
  HttpReply get(std::string_view target, std::string_view extra_headers = "");
  // Nothing runs, waits or is held any more.
  bool quiet();

 private:
  SteadyClock clock_;
  ByteTokenizer tokenizer_;
  PlainChatFormat chat_format_;
  ScriptedExecutor* executor_ = nullptr;  // the engine owns it
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<server::Api> api_;
  std::unique_ptr<server::Router> router_;
  std::unique_ptr<server::HttpServer> http_;
};

// Polls until the condition holds; false after many seconds.
bool eventually(const std::function<bool()>& condition);

// A script that writes the text and then EOS, step_sizes tokens a step.
Script text_script(std::string_view text, std::vector<int32_t> step_sizes = {1});
// {"a": {"b": 1}} by "a.b", list items by number: at(v, "choices.0.text"). Null where absent.
const json::Value& at(const json::Value& value, std::string_view path);
// Joined strings at path over the events of a stream, [DONE] left out.
std::string joined_deltas(const std::vector<std::string>& events, std::string_view path);

}  // namespace winnow::testing
