#include "bench/http_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

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
    return true;
  }
  HttpReply reply;
};

}  // namespace

class HttpClient::Core {
 public:
  explicit Core(Endpoints endpoints)
      : endpoints_(std::move(endpoints)), connection_(io_, endpoints_, clock_) {}

  Result<HttpReply> call(const std::string& bytes, double timeout_s, const std::string& what) {
    WholeReply reader;
    std::string error;
    io_.restart();
    boost::asio::co_spawn(
        io_,
        [&]() -> Awaitable<void> {
          error = co_await connection_.exchange(bytes, reader, timeout_s);
        },
        boost::asio::detached);
    io_.run();
    if (!error.empty()) return Status{StatusCode::kUnavailable, what + ": " + error, {}};
    return std::move(reader.reply);
  }

 private:
  boost::asio::io_context io_{1};
  SteadyClock clock_;
  Endpoints endpoints_;
  ClientConnection connection_;
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
