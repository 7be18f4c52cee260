// A server whose only work is to write events on time: what a load client is measured against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow {

struct PacedServerOptions {
  int port = 0;  // 0: any
  int64_t gap_ns = 20'000'000;
  int num_events = 500;  // of each stream, where the request names no max_new_tokens
  int num_streams = 0;   // events begin once so many streams are open; 0: at once
  int text_bytes = 200;  // of an event's text
  std::string tokenizer_path;
};

// Serves from a forked process until that is killed.
class PacedServer {
 public:
  explicit PacedServer(const PacedServerOptions& options);
  ~PacedServer();
  PacedServer(const PacedServer&) = delete;
  PacedServer& operator=(const PacedServer&) = delete;

  int port() const { return port_; }
  void wait() const;  // for ever

 private:
  int pid_ = -1;
  int port_ = 0;
};

}  // namespace winnow
