// What an endpoint can reach, and the request it answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "server/exchange.h"
#include "server/live_requests.h"
#include "server/request_metrics.h"
#include "server/server_config.h"
#include "server/worker_pool.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace winnow::server {

enum class ServerState { kStarting, kReady, kDraining };

// Lives as long as anything is being answered: destroy it after HttpServer::stop() and
// Engine::stop().
struct Api {
  Api(ServerConfig config,
      engine::Engine& engine,
      const text::Tokenizer& tokenizer,
      const text::ChatFormat* chat_format,
      const Clock& clock);

  const ServerConfig config;
  engine::Engine& engine;
  const text::Tokenizer& tokenizer;
  const text::ChatFormat* chat_format;  // nullptr: this checkpoint cannot format chats
  const Clock& clock;
  const int64_t started_ns;
  const int64_t created_unix_s;
  std::atomic<ServerState> state{ServerState::kStarting};
  LiveRequests live;
  RequestMetrics metrics;
  // Destroyed first: their jobs use what stands above.
  WorkerPool output_workers;  // tokens to text to bytes
  WorkerPool input_workers;   // parsing, templates, tokenization

  int64_t context_length() const { return engine.options().context_length; }
};

// One request on its way through an endpoint.
struct Call {
  HttpRequest request;
  std::shared_ptr<Exchange> exchange;
  std::string path_parameter;  // of a route that ends in {id}
  int64_t received_ns = 0;     // Clock time
};

// 32 hex digits, different for every call.
std::string random_id();
int64_t unix_seconds();

}  // namespace winnow::server
