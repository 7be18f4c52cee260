// What a run wants of a server besides answers: is it there, what does it serve, drop your cache.
#pragma once

#include <string>

#include "base/json.h"
#include "bench/backend_formats.h"
#include "bench/http_client.h"

namespace winnow::bench {

class ServerProbe {
 public:
  ServerProbe(Url url, HttpHeaders headers) : client_(std::move(url), std::move(headers)) {}

  // Asks /v1/models once a second until it answers. Throws Error after so long; 0: does not ask.
  void wait_ready(double timeout_s);
  // The first name of /v1/models. Throws Error where there is none.
  std::string model_name();
  // tokenizer_path, else model_path of /model_info, or of its older name; "" where neither is
  // there.
  std::string tokenizer_path();
  // /server_info or its older name; null where neither is there.
  json::Value server_info();
  // Waits until the server is idle, as it must be. Throws Error where it cannot be done.
  void flush_cache(const BackendFormat& format, double timeout_s);

 private:
  json::Value first_answer(std::initializer_list<std::string_view> targets);

  HttpClient client_;
};

}  // namespace winnow::bench
