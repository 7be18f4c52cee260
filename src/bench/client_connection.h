// One connection to a server: a request out, its answer in, as the bytes come.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "bench/url.h"

namespace winnow::bench {

using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

// Coroutines and sockets bound to io_context itself: any_io_executor, Asio's default, is copied
// several times an event.
using Executor = boost::asio::io_context::executor_type;
template <typename T>
using Awaitable = boost::asio::awaitable<T, Executor>;

// Addresses to try in turn, IPv4 first. Blocks. kUnavailable where the name is unknown.
Result<Endpoints> resolve(const Url& url);

class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual void on_head(int status, std::string_view content_type) = 0;
  // received_ns: when the system handed the bytes over. False: read no further.
  virtual bool on_body(std::string_view bytes, int64_t received_ns) = 0;
};

class ClientConnection {
 public:
  ClientConnection(boost::asio::io_context& io, const Endpoints& endpoints, const Clock& clock)
      : endpoints_(endpoints), clock_(clock), socket_(io), timer_(io) {}

  // "" once the whole answer has been read, else what went wrong. Opens the connection where it is
  // not open; it stays open after an answer that allows it. One call at a time.
  Awaitable<std::string> exchange(std::string_view request, AnswerReader& reader, double timeout_s);
  // On the io_context's thread: what is under way ends with an error.
  void abort();
  bool open() const { return socket_.is_open(); }

 private:
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        Executor>;

  Awaitable<std::string> connect();
  Awaitable<std::string> read_answer(AnswerReader& reader);
  void start_timer(double timeout_s);
  void drop_if_stale();

  const Endpoints& endpoints_;
  const Clock& clock_;
  Socket socket_;
  Timer timer_;
  std::vector<char> input_;
  std::shared_ptr<int> alive_ =
      std::make_shared<int>();  // an expired timer's handler may come late
  uint64_t exchange_idx_ = 0;
  bool timed_out_ = false;
  bool aborted_ = false;
  bool any_byte_ = false;  // of the answer under way
};

}  // namespace winnow::bench
