#include "bench/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

namespace winnow::bench {

LiveLine::LiveLine(bool wanted, std::FILE* stream)
    : shown_(wanted && ::isatty(::fileno(stream)) != 0), stream_(stream) {}

void LiveLine::show(std::string_view text) {
  if (!shown_) return;
  fmt::print(stream_, "\r{}\x1b[K", text);
  std::fflush(stream_);
  drawn_ = true;
}

void LiveLine::clear() {
  if (!drawn_) return;
  fmt::print(stream_, "\r\x1b[K");
  std::fflush(stream_);
  drawn_ = false;
}

}  // namespace winnow::bench
