// Calls that wait for their answer, over one connection kept alive. For the few requests around a
// measurement; StreamClient and CompletionClient are for many at once. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "bench/http_message.h"
#include "bench/url.h"

namespace winnow::bench {

class HttpClient {
 public:
  // headers go with every request.
  explicit HttpClient(Url url, HttpHeaders headers = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const Url& url() const { return url_; }

  // Any answer is a reply, whatever its status. kUnavailable: there was none, and why.
  Result<HttpReply> get(std::string_view target, double timeout_s);
  Result<HttpReply> post_json(std::string_view target, std::string body, double timeout_s);

 private:
  class Core;
  Result<HttpReply> call(const HttpRequest& request, double timeout_s);

  Url url_;
  HttpHeaders headers_;
  std::unique_ptr<Core> core_;  // from the first call on
};

}  // namespace winnow::bench
