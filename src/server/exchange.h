// One HTTP request being answered. The HTTP server implements it; tests have one without sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/http_message.h"

namespace winnow::server {

// Every call may come from any thread and never blocks. Either one respond(), or start_stream(),
// any number of send() and one finish_stream(). What comes after the client has gone is dropped.
class Exchange {
 public:
  static constexpr int64_t kNoKey = -1;

  virtual ~Exchange() = default;

  virtual void respond(HttpResponse response) = 0;

  virtual void start_stream(std::string content_type) = 0;
  // A chunk with the key of a chunk that still waits in the queue takes its place: a slow reader
  // of cumulative events sees the newest only. A reader who lets more than the backlog limit
  // pile up is cut off. False once the client is gone.
  virtual bool send(std::string chunk, int64_t replace_key = kNoKey) = 0;
  // close: end the connection as well, so that a client sees that something went wrong.
  virtual void finish_stream(bool close = false) = 0;

  // Runs once if the client goes away, or is cut off, before the answer is complete; at once when
  // that has happened already. Must not block. Replaces an earlier callback.
  virtual void on_gone(std::function<void()> callback) = 0;
  virtual bool gone() const = 0;
};

}  // namespace winnow::server
