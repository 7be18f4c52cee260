// One connection to a server: a request out, its answer in, as the bytes come. It never waits
// itself: one thread drives one with poll, or thousands with epoll.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "bench/url.h"

namespace winnow::bench {

struct Endpoint {
  sockaddr_storage address;
  socklen_t size;
};
using Endpoints = std::vector<Endpoint>;

// Addresses to try in turn, IPv4 first. Blocks. kUnavailable where the name is unknown.
Result<Endpoints> resolve(const Url& url);

class AnswerParser;
class AnswerReader;

class ClientConnection {
 public:
  // What advance() can go on after; kNothing: the exchange is over, and error() tells how.
  enum class Waits { kNothing, kRead, kWrite };

  ClientConnection(const Endpoints& endpoints, const Clock& clock);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // Opens the connection where it is not open; it stays open after an answer that allows it. One
  // exchange at a time; request and reader must live as long as it does.
  Waits begin(std::string_view request, AnswerReader& reader);
  // To be called once fd() is ready for what it waits for. scratch: where bytes are received into.
  // A read that does not fill it has emptied the socket, but for the end of the stream: drain reads
  // on to that, for a caller who hears of it only once.
  Waits advance(std::span<char> scratch, bool drain = false);
  // The last advance() stopped to let others have their turn: bytes may be left.
  bool more() const { return more_; }
  // Ends what is under way, with this error.
  void fail(std::string error);

  // "" after a whole answer, else what went wrong.
  const std::string& error() const { return error_; }
  int fd() const { return fd_; }
  // A change says that fd() is another socket, even if its number is the same.
  int64_t num_opened() const { return num_opened_; }

 private:
  enum class State { kIdle, kConnecting, kWriting, kReading };

  Waits connect();
  Waits connected();
  Waits write();
  Waits read(std::span<char> scratch, bool drain);
  Waits end(std::string error);
  void start_over();
  void feed(std::string_view bytes, int64_t received_ns);
  void close();
  void drop_if_stale();

  const Endpoints& endpoints_;
  const Clock& clock_;
  State state_ = State::kIdle;
  int fd_ = -1;
  int64_t num_opened_ = 0;
  std::string_view request_;
  AnswerReader* reader_ = nullptr;
  std::unique_ptr<AnswerParser> parser_;
  std::string pending_;  // received bytes that the parser could not take yet
  std::string error_;
  std::string write_error_;
  size_t next_endpoint_ = 0;
  size_t num_written_ = 0;
  int64_t last_received_ns_ = 0;
  int connect_errno_ = 0;
  bool reused_ = false;
  bool any_byte_ = false;  // of the answer under way
  bool more_ = false;
};

}  // namespace winnow::bench
