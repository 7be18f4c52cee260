// Chrome trace (chrome://tracing, Perfetto) of what the server did when: --trace out.json.
// Off, a Span costs one relaxed load; on, it writes one record into a buffer of fixed size.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace winnow::trace {

// Records up to max_events spans, from now on. Once a process; before other threads start.
void start(std::string path, size_t max_events = 1 << 20);
// Writes the file. Says in the log how many spans did not fit. Throws Error when it cannot write.
void stop();

namespace detail {
extern std::atomic<bool> enabled;
int64_t now_ns();
void record(const char* name, int64_t id, int64_t begin_ns, int64_t end_ns);
}  // namespace detail

// From construction to destruction. name must outlive the process (a literal); id is shown as an
// argument: a layer, a step; -1 = none.
class Span {
 public:
  explicit Span(const char* name, int64_t id = -1) {
    if (!detail::enabled.load(std::memory_order_relaxed)) return;
    name_ = name;
    id_ = id;
    begin_ns_ = detail::now_ns();
  }
  ~Span() {
    if (name_ != nullptr) detail::record(name_, id_, begin_ns_, detail::now_ns());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_ = nullptr;
  int64_t id_ = -1;
  int64_t begin_ns_ = 0;
};

}  // namespace winnow::trace
