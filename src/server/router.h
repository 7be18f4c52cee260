// Paths to endpoints: one visible table, one row an endpoint (routes.cpp).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "server/api.h"

namespace winnow::server {

// Answers through call.exchange, now or later. May throw: that becomes a 500.
using Endpoint = void (*)(Api& api, Call& call);

enum class RunOn {
  kIoThread,  // cheap, and answered even when every worker is busy
  kWorker,    // reads a body, tokenizes
};

enum class Access {
  kOpen,   // no key needed
  kKey,    // --api-key where one is set
  kAdmin,  // --admin-api-key where one is set, else as kKey
};

struct Route {
  std::string_view methods;  // "GET POST"; GET serves HEAD as well
  std::string_view path;     // exact, or ending in "{id}": the rest of the path
  Endpoint endpoint;
  RunOn run_on;
  Access access;
  bool generates = false;  // 503 until the server is ready and once it drains
};

std::span<const Route> routes();

class Router {
 public:
  explicit Router(Api& api, std::span<const Route> table = routes()) : api_(api), table_(table) {}
  // On the I/O thread.
  void handle(HttpRequest request, const std::shared_ptr<Exchange>& exchange) const;

 private:
  Api& api_;
  std::span<const Route> table_;
};

// While the model is being loaded there is no Api yet: 503 for everything but a CORS preflight.
void answer_while_starting(const HttpRequest& request, Exchange& exchange);

}  // namespace winnow::server
