// One HTTP answer out of bytes as they come.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace winnow::bench {

// Of an answer that is kept whole.
inline constexpr size_t kMaxBodyBytes = size_t{64} << 20;

class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual void on_head(int status, std::string_view content_type) = 0;
  // received_ns: when the last of the bytes came. False: read no further.
  virtual bool on_body(std::string_view bytes, int64_t received_ns) = 0;
};

class AnswerParser {
 public:
  explicit AnswerParser(AnswerReader& reader) : reader_(reader) { begin(); }

  // Bytes taken; the rest must come again with more behind it. error() where that makes no sense.
  size_t put(const char* bytes, size_t size, int64_t received_ns);
  // The server has closed its side: the end of an answer of no stated length.
  void put_eof(int64_t received_ns);

  bool done() const { return parser_->is_done(); }
  bool keep_alive() const { return parser_->keep_alive(); }
  const std::string& error() const { return error_; }

 private:
  void begin();
  // "100 Continue" and the like: the answer comes behind it.
  bool interim() const { return parser_->is_done() && parser_->get().result_int() < 200; }
  bool hand_over(int64_t received_ns);

  AnswerReader& reader_;
  std::optional<boost::beast::http::response_parser<boost::beast::http::string_body>> parser_;
  std::string error_;
  bool head_seen_ = false;
};

}  // namespace winnow::bench
