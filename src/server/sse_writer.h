// Server-sent events on an exchange. The 200 and its headers leave with the first event, so that
// what fails before it still gets a proper status code.
#pragma once

#include <memory>
#include <string>

#include "server/api_error.h"
#include "server/exchange.h"

namespace winnow::server {

class SseWriter {
 public:
  explicit SseWriter(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  bool started() const { return started_; }
  // data: <json>. replace_key as in Exchange::send.
  void event(std::string_view json, int64_t replace_key = Exchange::kNoKey);
  // [DONE]: the last thing.
  void done();
  // An HTTP error where nothing has been sent yet; else one error event, [DONE], and the
  // connection is closed (fault B112).
  void fail(const ApiError& error);

 private:
  std::shared_ptr<Exchange> exchange_;
  bool started_ = false;
};

}  // namespace winnow::server
