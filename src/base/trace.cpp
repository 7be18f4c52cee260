#include "base/trace.h"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

namespace winnow::trace {

namespace {

struct Event {
  const char* name;
  int64_t id;
  int64_t begin_ns;
  int64_t end_ns;
  int32_t thread;
  std::atomic<bool> complete{false};
};

struct Recording {
  std::string path;
  std::vector<Event> events;
  std::atomic<size_t> next{0};
  Recording(std::string to, size_t max_events) : path(std::move(to)), events(max_events) {}
};

std::unique_ptr<Recording> recording;  // set before other threads start, kept until exit

int32_t thread_number() {
  static std::atomic<int32_t> next{0};
  thread_local const int32_t number = next.fetch_add(1);
  return number;
}

}  // namespace

namespace detail {

std::atomic<bool> enabled{false};

int64_t now_ns() { return SteadyClock().now_ns(); }

void record(const char* name, int64_t id, int64_t begin_ns, int64_t end_ns) {
  const size_t idx = recording->next.fetch_add(1, std::memory_order_relaxed);
  if (idx >= recording->events.size()) return;
  Event& event = recording->events[idx];
  event.name = name;
  event.id = id;
  event.begin_ns = begin_ns;
  event.end_ns = end_ns;
  event.thread = thread_number();
  event.complete.store(true, std::memory_order_release);
}

}  // namespace detail

void start(std::string path, size_t max_events) {
  WINNOW_CHECK(!recording, "trace started twice");
  std::FILE* file = std::fopen(path.c_str(), "w");  // fail now, not after the run
  if (file == nullptr) throw_error("--trace {}: cannot be written", path);
  std::fclose(file);
  recording = std::make_unique<Recording>(std::move(path), max_events);
  detail::enabled.store(true);
}

void stop() {
  if (!detail::enabled.exchange(false)) return;
  std::FILE* file = std::fopen(recording->path.c_str(), "w");
  if (file == nullptr) throw_error("--trace {}: cannot be written", recording->path);
  const size_t wanted = recording->next.load();
  const size_t kept = std::min(wanted, recording->events.size());
  std::fputs("{\"traceEvents\":[\n", file);
  const char* separator = "";
  std::string line;
  for (size_t i = 0; i < kept; ++i) {
    const Event& event = recording->events[i];
    if (!event.complete.load(std::memory_order_acquire)) continue;
    line = fmt::format(
        "{}{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}",
        separator, event.name, ::getpid(), event.thread, static_cast<double>(event.begin_ns) / 1e3,
        static_cast<double>(event.end_ns - event.begin_ns) / 1e3);
    if (event.id >= 0) line += fmt::format(",\"args\":{{\"id\":{}}}", event.id);
    line += "}";
    std::fputs(line.c_str(), file);
    separator = ",\n";
  }
  std::fputs("\n]}\n", file);
  const bool failed = std::ferror(file) != 0;
  if (std::fclose(file) != 0 || failed) throw_error("--trace {}: write failed", recording->path);
  if (wanted > kept) log::warn("trace: {} spans did not fit in {}", wanted - kept, kept);
}

}  // namespace winnow::trace
