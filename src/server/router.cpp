#include "server/router.h"

#include <exception>

#include "base/log.h"
#include "server/api_error.h"

namespace winnow::server {
namespace {

constexpr std::string_view kParameter = "{id}";

bool path_matches(const Route& route, std::string_view path, std::string& parameter) {
  if (!route.path.ends_with(kParameter)) return route.path == path;
  const std::string_view prefix = route.path.substr(0, route.path.size() - kParameter.size());
  if (!path.starts_with(prefix) || path.size() == prefix.size()) return false;
  parameter = path.substr(prefix.size());
  return true;
}

bool method_matches(const Route& route, std::string_view method) {
  if (method == "HEAD") method = "GET";
  std::string_view rest = route.methods;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == method) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// Takes as long for a wrong key as for a right one.
bool same_secret(std::string_view given, std::string_view expected) {
  unsigned char difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ expected[i % expected.size()]);
  }
  return difference == 0;
}

std::string_view presented_key(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  if (const std::string* value = request.header("authorization")) {
    const std::string_view view = *value;
    if (view.size() > kBearer.size() &&
        equal_ignoring_case(view.substr(0, kBearer.size()), kBearer)) {
      return view.substr(kBearer.size());
    }
  }
  if (const std::string* value = request.header("x-api-key")) return *value;
  return {};
}

bool allowed(const ServerConfig& config, Access access, const HttpRequest& request) {
  if (access == Access::kOpen) return true;
  const bool admin = access == Access::kAdmin && !config.admin_api_key.empty();
  const std::string& expected = admin ? config.admin_api_key : config.api_key;
  return expected.empty() || same_secret(presented_key(request), expected);
}

void answer_preflight(const HttpRequest& request, Exchange& exchange) {
  const std::string* wanted = request.header("access-control-request-headers");
  exchange.respond({.status = 204,
                    .body = "",
                    .headers = {{"access-control-allow-methods", "GET, POST, PUT, HEAD, OPTIONS"},
                                {"access-control-allow-headers", wanted ? *wanted : "*"},
                                {"access-control-max-age", "600"}}});
}

void run(Api& api, const Route& route, Call& call) {
  const std::shared_ptr<Exchange> exchange = call.exchange;
  try {
    route.endpoint(api, call);
  } catch (const std::exception& e) {
    log::error("{}: {}", route.path, e.what());
    exchange->respond(error_response({500, std::string("Internal server error: ") + e.what()}));
  }
}

}  // namespace

void Router::handle(HttpRequest request, const std::shared_ptr<Exchange>& exchange) const {
  if (request.method == "OPTIONS") return answer_preflight(request, *exchange);
  std::string parameter;
  const Route* found = nullptr;
  std::string_view other_methods;
  for (const Route& route : table_) {
    if (!path_matches(route, request.path, parameter)) continue;
    other_methods = route.methods;
    if (!method_matches(route, request.method)) continue;
    found = &route;
    break;
  }
  const Access access = found != nullptr ? found->access : Access::kKey;
  if (!allowed(api_.config, access, request)) {
    exchange->respond(error_response({401, "Unauthorized"}));
  } else if (found == nullptr && !other_methods.empty()) {
    HttpResponse refusal =
        error_response({405, fmt::format("{} does not take {}, only {}", request.path,
                                         request.method, other_methods)});
    refusal.headers.push_back({"allow", std::string(other_methods)});
    exchange->respond(std::move(refusal));
  } else if (found == nullptr) {
    exchange->respond(error_response({404, fmt::format("there is no path {}", request.path)}));
  } else if (found->generates && api_.state != ServerState::kReady) {
    const bool draining = api_.state == ServerState::kDraining;
    exchange->respond(error_response(
        {503, draining ? "The server is shutting down." : "The server is starting up."}));
  } else {
    Call call{.request = std::move(request),
              .exchange = exchange,
              .path_parameter = std::move(parameter),
              .received_ns = api_.clock.now_ns()};
    if (found->run_on == RunOn::kIoThread) return run(api_, *found, call);
    auto job = [&api = api_, found, shared = std::make_shared<Call>(std::move(call))] {
      if (!shared->exchange->gone()) run(api, *found, *shared);
    };
    if (!api_.input_workers.try_run(std::move(job))) {
      exchange->respond(error_response({503, "The request queue is full."}));
    }
  }
}

void answer_while_starting(const HttpRequest& request, Exchange& exchange) {
  if (request.method == "OPTIONS") return answer_preflight(request, exchange);
  if (request.path == "/health" || request.path == "/health_generate") {
    return exchange.respond({.status = 503, .body = ""});
  }
  exchange.respond(error_response({503, "The server is starting up: the model is being loaded."}));
}

}  // namespace winnow::server
