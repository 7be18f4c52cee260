#include "bench/http_client.h"

#include <poll.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bench/answer_parser.h"
#include "bench/client_connection.h"

namespace winnow::bench {

namespace {

class WholeReply final : public AnswerReader {
 public:
  void on_head(int status, std::string_view content_type) override {
    reply.status = status;
    reply.content_type = content_type;
  }
  bool on_body(std::string_view bytes, int64_t /*received_ns*/) override {
    reply.body.append(bytes);
    return reply.body.size() <= kMaxBodyBytes;
  }
  HttpReply reply;
};

}  // namespace

class HttpClient::Core {
 public:
  explicit Core(Endpoints endpoints)
      : endpoints_(std::move(endpoints)), connection_(endpoints_, clock_) {}

  Result<HttpReply> call(const std::string& bytes, double timeout_s, const std::string& what) {
    WholeReply reader;
    const int64_t deadline_ns = clock_.now_ns() + std::llround(timeout_s * 1e9);
    auto waits = connection_.begin(bytes, reader);
    while (waits != ClientConnection::Waits::kNothing) {
      const int64_t left_ns = deadline_ns - clock_.now_ns();
      const bool reads = waits == ClientConnection::Waits::kRead;
      pollfd ready{.fd = connection_.fd(),
                   .events = static_cast<short>(reads ? POLLIN : POLLOUT),
                   .revents = 0};
      const int wait_ms =
          static_cast<int>(std::clamp<int64_t>(left_ns / 1'000'000 + 1, 0, INT_MAX));
      if (left_ns <= 0) {
        connection_.fail(fmt::format("no answer within {:g} s", timeout_s));
        break;
      }
      if (::poll(&ready, 1, wait_ms) > 0) waits = connection_.advance(scratch_);
    }
    const std::string& error = connection_.error();
    if (!error.empty()) return Status{StatusCode::kUnavailable, what + ": " + error, {}};
    return std::move(reader.reply);
  }

 private:
  SteadyClock clock_;
  Endpoints endpoints_;
  ClientConnection connection_;
  std::vector<char> scratch_ = std::vector<char>(16384);
};

HttpClient::HttpClient(Url url, HttpHeaders headers)
    : url_(std::move(url)), headers_(std::move(headers)) {}

HttpClient::~HttpClient() = default;

Result<HttpReply> HttpClient::get(std::string_view target, double timeout_s) {
  return call({.method = "GET", .target = std::string(target), .body = {}}, timeout_s);
}

Result<HttpReply> HttpClient::post_json(std::string_view target,
                                        std::string body,
                                        double timeout_s) {
  return call({.method = "POST", .target = std::string(target), .body = std::move(body)},
              timeout_s);
}

Result<HttpReply> HttpClient::call(const HttpRequest& request, double timeout_s) {
  if (core_ == nullptr) {
    auto endpoints = resolve(url_);
    if (!endpoints.ok()) return endpoints.status();
    core_ = std::make_unique<Core>(std::move(endpoints.value()));
  }
  return core_->call(request_bytes(url_, request, headers_, false), timeout_s,
                     fmt::format("{} {}{}", request.method, url_.text(), request.target));
}

}  // namespace winnow::bench
