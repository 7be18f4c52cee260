// Any bytes as a server's event stream: cut anywhere they give the same events, and no event
// breaks the reader of any API.
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/event_reader.h"
#include "bench/sse_parser.h"

namespace {

std::vector<std::string> parse(std::string_view bytes, size_t piece) {
  winnow::bench::SseParser parser(4096);
  std::vector<std::string> events;
  const auto take = [&](std::string_view data) { events.emplace_back(data); };
  bool fits = true;
  for (size_t at = 0; at < bytes.size() && fits; at += piece) {
    fits = parser.feed(bytes.substr(at, piece), take);
  }
  parser.finish(take);
  // How much of a stream that is cut off for its size has been read depends on the cuts.
  if (!fits) events.clear();
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using winnow::bench::ApiKind;
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = parse(bytes, size);
  const std::vector<std::string> pieces = parse(bytes, 1 + data[0] % 16);
  WINNOW_CHECK(whole.empty() || pieces.empty() || whole == pieces, "{} {}", whole.size(),
               pieces.size());
  for (const ApiKind kind : {ApiKind::kNative, ApiKind::kCompletions, ApiKind::kChat}) {
    winnow::bench::RequestRecord record;
    winnow::bench::EventReader reader({.kind = kind, .incremental_text = data[0] % 2 == 1}, record);
    int64_t now_ns = 0;
    for (const std::string& event : whole) reader.on_event(event, ++now_ns);
    reader.on_stream_end();
    for (const auto& event : record.events)
      WINNOW_CHECK(event.num_tokens > 0, "{}", event.num_tokens);
  }
  return 0;
}
