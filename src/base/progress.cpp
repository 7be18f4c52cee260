#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace winnow {

namespace {

constexpr int kBarColumns = 30;
constexpr std::chrono::milliseconds kRedrawEvery{100};

}  // namespace

Progress::Progress(Style style, std::FILE* stream) : style_(style), stream_(stream) {
  if (style_ == Style::kAuto) {
    style_ = ::isatty(::fileno(stream)) != 0 ? Style::kBar : Style::kPlain;
  }
}

void Progress::start(std::string label, int64_t total_bytes) {
  label_ = std::move(label);
  total_bytes_ = total_bytes;
  done_bytes_ = 0;
  started_ = drawn_ = std::chrono::steady_clock::now();
  if (style_ == Style::kBar) draw();
}

void Progress::advance(int64_t bytes) {
  done_bytes_ += bytes;
  if (style_ != Style::kBar) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < kRedrawEvery) return;
  drawn_ = now;
  draw();
}

void Progress::finish() {
  if (style_ == Style::kSilent) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  if (style_ == Style::kBar) {
    draw();
    fmt::print(stream_, "\n");
  } else {
    fmt::print(stream_, "{}: {} in {:.1f} s\n", label_, format_bytes(done_bytes_), elapsed.count());
  }
  std::fflush(stream_);
}

void Progress::draw() {
  const double share =
      total_bytes_ > 0
          ? std::min(1.0, static_cast<double>(done_bytes_) / static_cast<double>(total_bytes_))
          : 1.0;
  const int filled = static_cast<int>(share * kBarColumns);
  fmt::print(stream_, "\r{} [{:=<{}}{: <{}}] {:3.0f} %  {} of {}\x1b[K", label_, "", filled, "",
             kBarColumns - filled, share * 100, format_bytes(done_bytes_),
             format_bytes(total_bytes_));
  std::fflush(stream_);
}

std::string format_bytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace winnow
