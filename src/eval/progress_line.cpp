#include "eval/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace winnow::eval {
namespace {

constexpr int kBarColumns = 24;
constexpr std::chrono::milliseconds kRedrawEvery{100};

}  // namespace

ProgressLine::ProgressLine(Style style, std::FILE* stream) : style_(style), stream_(stream) {
  if (style_ == Style::kAuto) {
    style_ = ::isatty(::fileno(stream)) != 0 ? Style::kBar : Style::kPlain;
  }
}

void ProgressLine::start(std::string label, int64_t total) {
  label_ = std::move(label);
  total_ = total;
  next_plain_ = std::max<int64_t>(1, total / 10);
  if (style_ == Style::kBar) draw();
}

void ProgressLine::add(const Sample& sample) {
  ++done_;
  failed_ += sample.failed();
  counted_ += !sample.failed();
  right_ += sample.right();
  truncated_ += sample.truncated();
  invalid_ += sample.error.empty() && sample.verdict.outcome == Outcome::kInvalid;
  if (style_ == Style::kPlain && done_ >= next_plain_) {
    next_plain_ += std::max<int64_t>(1, total_ / 10);
    fmt::print(stream_, "{}\n", text());
    std::fflush(stream_);
  }
  const auto now = std::chrono::steady_clock::now();
  if (style_ != Style::kBar || now - drawn_ < kRedrawEvery) return;
  drawn_ = now;
  draw();
}

void ProgressLine::finish() {
  if (style_ != Style::kBar) return;
  draw();
  fmt::print(stream_, "\n");
  std::fflush(stream_);
}

std::string ProgressLine::text() const {
  std::string out = fmt::format("{} {}/{}", label_, done_, total_);
  if (counted_ > 0) {
    const auto count = static_cast<double>(counted_);
    const double score = static_cast<double>(right_) / count;
    out += fmt::format(", score {:.3f} +- {:.3f}", score, std::sqrt(score * (1 - score) / count));
  }
  if (invalid_ > 0) out += fmt::format(", {} invalid", invalid_);
  if (truncated_ > 0) out += fmt::format(", {} truncated", truncated_);
  if (failed_ > 0) out += fmt::format(", {} failed", failed_);
  return out;
}

void ProgressLine::draw() {
  const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1.0;
  const int filled = static_cast<int>(std::min(1.0, share) * kBarColumns);
  fmt::print(stream_, "\r[{:=<{}}{: <{}}] {}\x1b[K", "", filled, "", kBarColumns - filled, text());
  std::fflush(stream_);
}

}  // namespace winnow::eval
