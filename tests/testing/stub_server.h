// A server that says what a script says, when it says so: for clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::testing {

struct StubRequest {
  std::string method;
  std::string target;
  std::string body;
  std::string head;  // the whole, as it came
};

struct StubStep {
  std::string bytes;                    // sent as they are
  std::chrono::nanoseconds delay = {};  // before them, counted from when the step before was due
};

struct StubAnswer {
  std::vector<StubStep> steps;
  bool close = false;  // the connection, behind the last step
  bool stall = false;  // say nothing more and keep the connection
};

class StubServer {
 public:
  using Script = std::function<StubAnswer(const StubRequest&)>;  // on the server's threads

  explicit StubServer(Script script, int threads = 1);
  ~StubServer();
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;

  int port() const;
  std::string url() const;
  int64_t num_requests() const;
  int64_t num_connections() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

// With a Content-Length.
StubAnswer json_answer(std::string_view body, int status = 200);
// Each event in a chunk of its own, behind its delay.
struct StubEvent {
  std::string data;
  std::chrono::nanoseconds delay = {};
};
StubAnswer sse_answer(const std::vector<StubEvent>& events);

}  // namespace winnow::testing
