// A model server whose answers a test writes: what evaluations talk to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "testing/stub_server.h"

namespace winnow::testing {

struct ModelAnswer {
  std::string text = {};
  std::string reasoning = {};
  std::string finish_reason = "stop";
  int64_t completion_tokens = 10;
  int status = 200;  // anything else: an error with text as its message
};

class AnsweringServer {
 public:
  // prompt: the text, or the last message's content. On the server's threads.
  using Answerer = std::function<ModelAnswer(std::string_view prompt, int64_t request_idx)>;

  explicit AnsweringServer(Answerer answerer, std::string model = "stub/model");

  std::string url() const { return server_.url(); }
  int port() const { return server_.port(); }
  // Bodies of the requests that asked for an answer, in the order they came.
  std::vector<json::Value> asked() const;

 private:
  StubAnswer answer(const StubRequest& request);
  StubAnswer generated(const StubRequest& request, const json::Value& body);

  Answerer answerer_;
  std::string model_;
  mutable std::mutex mutex_;
  std::vector<json::Value> asked_;
  StubServer server_;  // last: its threads use the rest
};

}  // namespace winnow::testing
