// One line on a terminal that is redrawn as things go on; nothing where stderr is no terminal.
#pragma once

#include <cstdio>
#include <string_view>

namespace winnow::bench {

class LiveLine {
 public:
  explicit LiveLine(bool wanted, std::FILE* stream = stderr);
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool shown() const { return shown_; }
  void show(std::string_view text);
  // The line is empty again.
  void clear();

 private:
  bool shown_;
  bool drawn_ = false;
  std::FILE* stream_;
};

}  // namespace winnow::bench
