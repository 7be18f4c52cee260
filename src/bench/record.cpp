#include "bench/record.h"

namespace winnow::bench {

int64_t RequestRecord::num_output_tokens() const {
  if (completion_tokens >= 0) return completion_tokens;
  if (num_retokenized > 0) return num_retokenized;
  int64_t seen = 0;
  for (const TokenEvent& event : events) seen += event.num_tokens;
  return seen;
}

double ttft_s(const RequestRecord& record) {
  if (record.events.empty()) return latency_s(record);
  return static_cast<double>(record.events.front().received_ns - record.start_ns) * 1e-9;
}

double latency_s(const RequestRecord& record) {
  return static_cast<double>(record.last_event_ns - record.start_ns) * 1e-9;
}

void append_itls(const RequestRecord& record, std::vector<double>& itls_s) {
  for (size_t i = 1; i < record.events.size(); ++i) {
    const TokenEvent& event = record.events[i];
    const double gap_s =
        static_cast<double>(event.received_ns - record.events[i - 1].received_ns) * 1e-9;
    itls_s.insert(itls_s.end(), static_cast<size_t>(event.num_tokens), gap_s / event.num_tokens);
  }
}

void append_token_times(const RequestRecord& record, std::vector<int64_t>& times_ns) {
  for (size_t i = 0; i < record.events.size(); ++i) {
    const TokenEvent& event = record.events[i];
    const int64_t before = i == 0 ? event.received_ns : record.events[i - 1].received_ns;
    const int64_t gap = event.received_ns - before;
    for (int32_t k = 1; k <= event.num_tokens; ++k) {
      times_ns.push_back(before + gap * k / event.num_tokens);
    }
  }
}

}  // namespace winnow::bench
