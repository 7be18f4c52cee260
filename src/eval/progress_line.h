// How far an evaluation is and what the score is so far, on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "eval/sample.h"

namespace winnow::eval {

class ProgressLine {
 public:
  enum class Style {
    kAuto,   // kBar where the stream is a terminal, else kPlain
    kBar,    // redrawn in place
    kPlain,  // a line each tenth of the way
    kSilent,
  };

  explicit ProgressLine(Style style = Style::kAuto, std::FILE* stream = stderr);

  void start(std::string label, int64_t total);
  // From one thread at a time.
  void add(const Sample& sample);
  void finish();

  // "gpqa 812/1584, score 0.842 +- 0.013, 3 invalid, 2 truncated"
  std::string text() const;

 private:
  void draw();

  Style style_;
  std::FILE* stream_;
  std::string label_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  int64_t counted_ = 0;  // not failed
  int64_t right_ = 0;
  int64_t invalid_ = 0;
  int64_t truncated_ = 0;
  int64_t failed_ = 0;
  int64_t next_plain_ = 0;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace winnow::eval
