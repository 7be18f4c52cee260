// Any bytes as what a connection receives: the parser with the server's limits, the framing of
// answers, paths and queries.
#include <cstdint>

#include "server/http_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace winnow::server;
  const HttpServerOptions options{.max_header_bytes = 4096, .max_body_bytes = 4096};
  size_t used = 0;
  for (int request = 0; request < 4 && used < size; ++request) {
    RequestParser parser;
    configure(parser, options);
    parser.eager(true);
    boost::system::error_code ec;
    used += parser.put(boost::asio::buffer(data + used, size - used), ec);
    if (ec || !parser.is_done()) {
      if (ec) parse_error(ec, options);
      return 0;
    }
    const AnswerFraming framing = answer_framing(parser);
    const HttpRequest parsed = take_request(parser);
    WINNOW_CHECK(parsed.body.size() <= options.max_body_bytes, "{}", parsed.body.size());
    parsed.query_value("timeout");
    parsed.header("content-type");
    HttpExchange exchange(framing, 1024, [] {});
    if (size % 2 == 0) {
      exchange.respond({.body = parsed.path});
    } else {
      exchange.start_stream("text/event-stream");
      exchange.send(parsed.query, Exchange::kNoKey);
      exchange.finish_stream(false);
    }
    WINNOW_CHECK(exchange.take().complete, "{}", parsed.method);
  }
  return 0;
}
