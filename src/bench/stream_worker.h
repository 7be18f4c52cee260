// The thread that reads a share of a StreamClient's answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "bench/client_connection.h"
#include "bench/stream_client.h"

namespace winnow::bench {

class StreamWorker {
 public:
  // on_end: on the worker's thread, once an exchange is over and its reader let go.
  StreamWorker(const Endpoints& endpoints, double timeout_s, std::function<void()> on_end);
  ~StreamWorker();  // nothing may be under way
  StreamWorker(const StreamWorker&) = delete;
  StreamWorker& operator=(const StreamWorker&) = delete;

  // Any thread. What is started before cancel() is cancelled by it.
  void start(std::string request, std::shared_ptr<StreamReader> reader);
  void cancel();

 private:
  struct Exchange;
  struct Command {
    enum class Kind { kStart, kCancel, kStop } kind;
    std::string request;
    std::shared_ptr<StreamReader> reader;
  };

  void send(Command command);
  void run();
  bool obey_commands();
  void begin(Command command);
  void cancel_all();
  void watch(Exchange& exchange, ClientConnection::Waits waits);
  void finish(Exchange& exchange);
  void fail(Exchange& exchange, std::string error);
  void expire();
  int wait_ms() const;
  void rest() const;

  const Endpoints& endpoints_;
  SteadyClock clock_;
  double timeout_s_;
  std::function<void()> on_end_;
  int epoll_ = -1;
  int wake_ = -1;  // eventfd: there are commands
  std::mutex mutex_;
  std::vector<Command> commands_;
  // The thread's own.
  std::unordered_map<Exchange*, std::unique_ptr<Exchange>> exchanges_;
  std::multimap<int64_t, Exchange*> deadlines_;
  std::vector<char> scratch_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace winnow::bench
