// Progress of a long start-up step on stderr: a bar on a terminal, one line at the end elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace winnow {

class Progress {
 public:
  enum class Style {
    kAuto,    // kBar where the stream is a terminal, else kPlain
    kBar,     // redrawn in place, at most ten times a second
    kPlain,   // "Loading weights: 1.2 GB in 3.4 s" when finished
    kSilent,  // nothing: tests and tools that print JSON
  };

  explicit Progress(Style style = Style::kAuto, std::FILE* stream = stderr);

  // total_bytes may be 0: the step then has nothing to show but its end.
  void start(std::string label, int64_t total_bytes);
  void advance(int64_t bytes);
  void finish();

 private:
  void draw();

  Style style_;
  std::FILE* stream_;
  std::string label_;
  int64_t total_bytes_ = 0;
  int64_t done_bytes_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point drawn_;
};

// "1.5 GB", "640.0 kB", "12 B": decimal units, as memory and model sizes are quoted.
std::string format_bytes(int64_t bytes);

}  // namespace winnow
