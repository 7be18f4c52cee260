#include "server/endpoints.h"
#include "server/router.h"

namespace winnow::server {

std::span<const Route> routes() {
  using enum RunOn;
  using enum Access;
  // clang-format off
  static constexpr Route kRoutes[] = {
      //methods     path                     endpoint           runs on    access  generates
      {"POST",     "/v1/chat/completions",  chat_completions,  kWorker,   kKey, true},
      {"POST",     "/v1/completions",       completions,       kWorker,   kKey, true},
      {"POST PUT", "/generate",             native_generate,   kWorker,   kKey, true},
      {"POST",     "/tokenize",             tokenize,          kWorker,   kKey},
      {"POST",     "/v1/tokenize",          tokenize,          kWorker,   kKey},
      {"POST",     "/detokenize",           detokenize,        kWorker,   kKey},
      {"POST",     "/v1/detokenize",        detokenize,        kWorker,   kKey},
      {"GET",      "/v1/models",            list_models,       kIoThread, kKey},
      {"GET",      "/v1/models/{id}",       show_model,        kIoThread, kKey},
      {"GET",      "/model_info",           model_info,        kIoThread, kKey},
      {"GET",      "/get_model_info",       model_info,        kIoThread, kKey},
      {"GET",      "/server_info",          server_info,       kIoThread, kAdmin},
      {"GET",      "/get_server_info",      server_info,       kIoThread, kAdmin},
      {"GET",      "/health",               health,            kIoThread, kOpen},
      {"GET",      "/health_generate",      health_generate,   kIoThread, kOpen},
      {"GET",      "/metrics",              metrics,           kIoThread, kOpen},
      {"GET POST", "/flush_cache",          flush_cache,       kIoThread, kAdmin},
      {"POST",     "/abort_request",        abort_request,     kWorker,   kKey},
  };
  // clang-format on
  return kRoutes;
}

}  // namespace winnow::server
