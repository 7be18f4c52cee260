// A time limit for reading that leaves the socket open, so that the client can be told. (The one of
// Beast's tcp_stream closes it.) Lives on the I/O thread only. Private to the HTTP server.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>

namespace winnow::server {

class ReadDeadline {
 public:
  explicit ReadDeadline(boost::asio::ip::tcp::socket& socket)
      : state_(std::make_shared<State>(socket)) {}

  // Reads under way at that time end with operation_aborted. Replaces the limit before.
  void expires_after(std::chrono::milliseconds time) {
    state_->passed = false;
    state_->timer.expires_after(time);
    state_->timer.async_wait([weak = std::weak_ptr(state_)](boost::system::error_code ec) {
      const auto state = weak.lock();
      // A wait that ended just when its limit was replaced comes here without an error.
      if (ec || !state || state->timer.expiry() > std::chrono::steady_clock::now()) return;
      state->passed = true;
      state->socket.cancel(ec);
    });
  }
  void expires_never() { state_->timer.expires_at(boost::asio::steady_timer::time_point::max()); }
  bool passed() const { return state_->passed; }

 private:
  struct State {
    explicit State(boost::asio::ip::tcp::socket& s) : socket(s), timer(s.get_executor()) {}
    boost::asio::ip::tcp::socket& socket;
    boost::asio::steady_timer timer;
    bool passed = false;
  };
  std::shared_ptr<State> state_;
};

}  // namespace winnow::server
