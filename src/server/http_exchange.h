// The queue between whoever answers a request (any thread) and the connection that writes it (the
// I/O thread). Private to the HTTP server.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "server/exchange.h"

namespace winnow::server {

struct AnswerFraming {
  bool head_only = false;  // HEAD: no body
  bool chunked = true;     // HTTP/1.1; else a stream ends with the connection
  bool keep_alive = true;
};

// The bytes of a status line and headers, the empty line included.
std::string response_head(int status,
                          std::string_view content_type,
                          const std::vector<Header>& headers,
                          std::string_view length_header,
                          bool keep_alive);

class HttpExchange final : public Exchange {
 public:
  // wake: tells the I/O thread that there is something to take; called without the lock held.
  HttpExchange(AnswerFraming framing, size_t backlog_bytes, std::function<void()> wake)
      : framing_(framing), backlog_bytes_(backlog_bytes), wake_(std::move(wake)) {}

  void respond(HttpResponse response) override;
  void start_stream(std::string content_type) override;
  bool send(std::string chunk, int64_t replace_key) override;
  void finish_stream(bool close) override;
  void on_gone(std::function<void()> callback) override;
  bool gone() const override;

  // I/O thread: what there is to write now.
  struct Outgoing {
    std::string bytes;
    bool complete = false;    // nothing comes after bytes
    bool keep_alive = false;  // with complete
  };
  Outgoing take();
  // The reader let too much pile up: drop the connection.
  bool cut_off() const;
  // I/O thread: the answer left whole (no callback any more), or the client left. mark_gone is
  // false, and does nothing, where the answer was complete.
  void mark_complete();
  bool mark_gone();
  // From now on the connection ends with this answer.
  void forbid_keep_alive();

 private:
  struct Chunk {
    std::string bytes;
    int64_t key = kNoKey;
  };
  void push(std::string bytes, int64_t key, std::unique_lock<std::mutex>& lock);
  void wake_unlocked(std::unique_lock<std::mutex>& lock);

  AnswerFraming framing_;
  const size_t backlog_bytes_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::deque<Chunk> queue_;
  size_t queued_bytes_ = 0;
  bool wake_pending_ = false;
  bool started_ = false;   // a head has been queued
  bool finished_ = false;  // the last byte has been queued
  bool complete_ = false;  // the last byte has left
  bool gone_ = false;
  bool cut_off_ = false;
  std::function<void()> on_gone_;
};

}  // namespace winnow::server
