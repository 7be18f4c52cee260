// Server-sent events out of bytes as they come, cut anywhere.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace winnow::bench {

class SseParser {
 public:
  // The data of one event, its lines joined by '\n'. Valid during the call.
  using OnEvent = std::function<void(std::string_view data)>;

  explicit SseParser(size_t max_event_bytes = size_t{64} << 20)
      : max_event_bytes_(max_event_bytes) {}

  // False once an event is larger than the limit; nothing more is read then.
  bool feed(std::string_view bytes, const OnEvent& on_event);
  // The answer is over: an event that lacks its blank line counts as well, since some servers
  // leave it out.
  void finish(const OnEvent& on_event);

 private:
  void take_line(std::string_view line, const OnEvent& on_event);
  void dispatch(const OnEvent& on_event);

  size_t max_event_bytes_;
  std::string line_;  // the line that is not complete yet
  std::string data_;
  bool has_data_ = false;
  bool skip_newline_ = false;  // the byte before was '\r'
  bool too_large_ = false;
};

}  // namespace winnow::bench
