// Thousands of answers read at once by a few I/O threads: event streams, event by event with the
// time each came, or whole bodies. Every request has a connection of its own, as with the Python
// clients, so that connecting is part of what is measured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "bench/http_message.h"
#include "bench/url.h"

namespace winnow::bench {

struct StreamEnd {
  std::string error;   // of the transport; "" when the whole answer came
  HttpReply reply;     // the body only where the answer was no event stream
  int64_t end_ns = 0;  // when its last byte came, or when it failed
};

// One answer's reader. Calls come from one I/O thread, one at a time, and must not block.
class StreamReader {
 public:
  virtual ~StreamReader() = default;
  // Just before the connection is opened.
  virtual void on_start(int64_t now_ns) = 0;
  // The data of one event of an answer with status 200. received_ns: when its last byte reached
  // this machine, by the kernel's note (SO_TIMESTAMPNS) or, where there is none, when it was read;
  // events read together share it. Steady clock.
  virtual void on_event(std::string_view data, int64_t received_ns) = 0;
  // Exactly once, last.
  virtual void on_end(StreamEnd end) = 0;
};

class StreamClient {
 public:
  struct Options {
    Url url;
    HttpHeaders headers = {};
    int io_threads = 1;
    double timeout_s = 6 * 3600;  // of one answer, from its start to its last byte
  };

  // Looks the host up and raises the limit of open files. Throws Error where the host is unknown.
  explicit StreamClient(Options options);
  ~StreamClient();  // cancels what is under way
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  // Any thread, also from a reader's call.
  void start(const HttpRequest& request, std::shared_ptr<StreamReader> reader);
  // Until nothing is under way. Not from a reader's call.
  void wait();
  // What is under way ends with the error "cancelled"; start() still works.
  void cancel();

  const Url& url() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace winnow::bench
