#include "server/sse_writer.h"

#include <utility>

namespace winnow::server {

void SseWriter::event(std::string_view json, int64_t replace_key) {
  if (!std::exchange(started_, true)) exchange_->start_stream("text/event-stream; charset=utf-8");
  std::string bytes;
  bytes.reserve(json.size() + 8);
  bytes += "data: ";
  bytes += json;
  bytes += "\n\n";
  exchange_->send(std::move(bytes), replace_key);
}

void SseWriter::done() {
  event("[DONE]");
  exchange_->finish_stream();
}

void SseWriter::fail(const ApiError& error) {
  if (!started_) return exchange_->respond(error_response(error));
  exchange_->send(error_event(error) + "data: [DONE]\n\n");
  exchange_->finish_stream(true);
}

}  // namespace winnow::server
