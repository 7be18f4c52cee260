// The events of one answer into its record. The hot path of the client: each event is parsed once,
// where it stands, and nothing is kept but what metrics need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/backend_formats.h"
#include "bench/record.h"

namespace winnow::bench {

struct EventReaderOptions {
  ApiKind kind = ApiKind::kNative;
  bool incremental_text = false;  // /generate sends what is new instead of all so far
};

struct ParsedEvent;

class EventReader {
 public:
  EventReader(EventReaderOptions options, RequestRecord& record)
      : options_(options), record_(record) {}

  // data: of one event. An error in it ends up in record.error; later events are still read.
  void on_event(std::string_view data, int64_t received_ns);
  // An answer that was no event stream: a plain body, or an error.
  void on_body(int status, std::string_view body, int64_t end_ns);
  // The stream is over without trouble of the transport.
  void on_stream_end();

 private:
  void fail(std::string error);
  void take(const ParsedEvent& parsed, int64_t received_ns);

  EventReaderOptions options_;
  RequestRecord& record_;
  int64_t num_counted_ = 0;  // completion tokens said so far
  bool done_ = false;
};

}  // namespace winnow::bench
