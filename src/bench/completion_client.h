// Requests whose whole answers are wanted, so many of them in flight at once: evaluations.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "bench/completion.h"
#include "bench/http_message.h"
#include "bench/url.h"

namespace winnow::bench {

class CompletionClient {
 public:
  struct Options {
    Url url;
    HttpHeaders headers = {};
    int parallel = 64;
    int io_threads = 1;
    double timeout_s = 3600;  // of one answer, without its wait for a place
  };
  using OnDone = std::function<void(Completion completion)>;

  // Throws Error where the host is unknown.
  explicit CompletionClient(Options options);
  ~CompletionClient();  // cancels
  CompletionClient(const CompletionClient&) = delete;
  CompletionClient& operator=(const CompletionClient&) = delete;

  // POSTs the body to "/generate", "/v1/chat/completions" or "/v1/completions", without "stream",
  // once fewer than `parallel` are in flight, in the order of the calls. Any thread, also from
  // on_done (a retry). on_done is called exactly once, on an I/O thread, never two at a time.
  void submit(std::string target, const json::Value& body, OnDone on_done);
  // Until everything submitted has been answered. Not from on_done.
  void wait();
  // Everything in flight or waiting ends with the error "cancelled".
  void cancel();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace winnow::bench
