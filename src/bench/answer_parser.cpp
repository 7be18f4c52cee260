#include "bench/answer_parser.h"

#include <boost/asio/buffer.hpp>

namespace winnow::bench {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr uint32_t kMaxHeaderBytes = 65536;

}  // namespace

size_t AnswerParser::put(const char* bytes, size_t size, int64_t received_ns) {
  size_t used = 0;
  while (used < size && !parser_->is_done()) {
    error_code ec;
    const size_t n = parser_->put(asio::buffer(bytes + used, size - used), ec);
    used += n;
    if (ec && ec != http::error::need_more) {
      error_ = "no valid HTTP answer: " + ec.message();
      break;
    }
    if (interim()) {
      begin();
      continue;
    }
    if (!hand_over(received_ns) || n == 0) break;
  }
  return used;
}

void AnswerParser::put_eof(int64_t received_ns) {
  error_code ec;
  if (!parser_->is_header_done()) {
    error_ = "the connection ended before an answer";
    return;
  }
  parser_->put_eof(ec);
  if (ec || !parser_->is_done()) {
    error_ = "the connection ended in the middle of the answer";
    return;
  }
  hand_over(received_ns);
}

void AnswerParser::begin() {
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(boost::none);
}

bool AnswerParser::hand_over(int64_t received_ns) {
  if (!parser_->is_header_done()) return true;
  auto& message = parser_->get();
  if (!head_seen_) {
    head_seen_ = true;
    const auto type = message[http::field::content_type];
    reader_.on_head(static_cast<int>(message.result_int()), {type.data(), type.size()});
  }
  if (message.body().empty()) return true;
  const bool more = reader_.on_body(message.body(), received_ns);
  message.body().clear();
  if (!more) error_ = "the answer is too large";
  return more;
}

}  // namespace winnow::bench
