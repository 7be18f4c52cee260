// Bytes to HttpRequest through Beast's parser, with this server's limits. Included by the server
// and by the fuzzer that feeds it bytes; nobody else sees Beast.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <utility>

#include "server/api_error.h"
#include "server/http_exchange.h"
#include "server/http_message.h"
#include "server/http_server.h"

namespace winnow::server {

using RequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

// In the place of a parser's error: the bodies of all connections take all that they may.
inline const boost::system::error_code kNoRoomForBody =
    make_error_code(boost::system::errc::not_enough_memory);

inline void configure(RequestParser& parser, const HttpServerOptions& options) {
  parser.header_limit(static_cast<std::uint32_t>(options.max_header_bytes));
  parser.body_limit(options.max_body_bytes);
}

inline AnswerFraming answer_framing(const RequestParser& parser) {
  const auto& message = parser.get();
  return {.head_only = message.method() == boost::beast::http::verb::head,
          .chunked = message.version() >= 11,
          .keep_alive = message.version() >= 11 && message.keep_alive()};
}

// What a header asks for that this server does not do. Ignored, a coding would make a body out of
// other bytes than the client meant, or leave the body behind as the next request.
inline std::optional<ApiError> header_error(const RequestParser& parser) {
  namespace http = boost::beast::http;
  for (const auto& field : parser.get()) {
    const bool transfer = field.name() == http::field::transfer_encoding;
    if (!transfer && field.name() != http::field::content_encoding) continue;
    const std::string_view value(field.value().data(), field.value().size());
    if (equal_ignoring_case(value, transfer ? "chunked" : "identity")) continue;
    const std::string name = transfer ? "transfer-encoding" : "content-encoding";
    return ApiError{400,
                    fmt::format("header {} must be {}, or left out, not {}", name,
                                transfer ? "chunked" : "identity", value),
                    name};
  }
  return std::nullopt;
}

// The parser must be done.
inline HttpRequest take_request(RequestParser& parser) {
  auto message = parser.release();
  HttpRequest request;
  request.method = std::string(message.method_string());
  std::string_view target(message.target().data(), message.target().size());
  // Absolute form, as proxies send it: "http://host/path".
  if (const size_t scheme = target.find("://"); scheme != target.npos && target.front() != '/') {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == target.npos ? "/" : target.substr(slash);
  }
  const size_t mark = std::min(target.find('?'), target.size());
  request.path = percent_decode(target.substr(0, mark));
  request.query = std::string(target.substr(std::min(mark + 1, target.size())));
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  request.body = std::move(message.body());
  return request;
}

inline ApiError read_timeout_error(const HttpServerOptions& options) {
  return {408, fmt::format("the request did not arrive whole: nothing more came for {} s",
                           static_cast<double>(options.read_timeout_ms) / 1000)};
}

// What to answer to bytes that are no request; nothing where silence and a close are due.
inline std::optional<ApiError> parse_error(const boost::system::error_code& ec,
                                           const HttpServerOptions& options) {
  namespace http = boost::beast::http;
  if (ec == http::error::body_limit) {
    return ApiError{
        413, fmt::format("the request body is larger than {} bytes", options.max_body_bytes)};
  }
  if (ec == kNoRoomForBody) {
    return ApiError{503, fmt::format("request bodies of more than {} bytes wait already",
                                     options.max_waiting_body_bytes)};
  }
  if (ec == http::error::header_limit) {
    return ApiError{
        431, fmt::format("the request headers are larger than {} bytes", options.max_header_bytes)};
  }
  if (ec.category() == http::make_error_code(http::error::bad_method).category() &&
      ec != http::error::end_of_stream && ec != http::error::partial_message) {
    return ApiError{400, "malformed HTTP request: " + ec.message()};
  }
  return std::nullopt;
}

}  // namespace winnow::server
