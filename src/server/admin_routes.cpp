// GET, POST /flush_cache; POST /abort_request
#include <charconv>

#include "server/endpoints.h"
#include "server/generation.h"
#include "server/limits.h"
#include "server/protocol_reader.h"

namespace winnow::server {
namespace {

constexpr double kMaxFlushWaitS = 3600;

// ?timeout=seconds; 0 where there is none.
Result<int64_t> flush_wait_ns(const HttpRequest& request) {
  const std::string text = request.query_value("timeout").value_or("0");
  double seconds = -1;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = ec == std::errc() && end == text.data() + text.size();
  if (!whole || !(seconds >= 0 && seconds <= kMaxFlushWaitS)) {
    return invalid_argument("timeout", "timeout must be seconds between 0 and {}, got \"{}\"",
                            kMaxFlushWaitS, text);
  }
  return static_cast<int64_t>(seconds * 1e9);
}

}  // namespace

// Only acts while nothing runs or waits; waits that long for it where asked to.
void flush_cache(Api& api, Call& call) {
  const Result<int64_t> wait_ns = flush_wait_ns(call.request);
  if (!wait_ns.ok()) return refuse(api, *call.exchange, wait_ns.status());
  api.engine.flush_cache(wait_ns.value(), [exchange = call.exchange](const Status& status) {
    exchange->respond(
        {.status = status.ok() ? 200 : 400,
         .body = status.ok() ? "Cache flushed.\n" : "Cache not flushed: " + status.message + "\n",
         .content_type = "text/plain; charset=utf-8"});
  });
}

// Exact ids only: "req_1" leaves "req_10" alone. Of a batch the request's id ends all of it,
// "<rid>_<i>" one sequence. Unknown ids are no error: the request may just have finished.
void abort_request(Api& api, Call& call) {
  std::optional<json::Value> body = read_body(api, call, ContentType::kAny);
  if (!body) return;
  ObjectReader reader(*body);
  const std::optional<std::string> rid = reader.string("rid", kMaxRidBytes);
  const bool abort_all = reader.boolean("abort_all", false);
  if (!rid && !abort_all) reader.fail("rid", "is required unless abort_all is true");
  if (!reader.ok()) return refuse(api, *call.exchange, reader.status());
  if (abort_all) {
    for (const auto& generation : api.live.all()) generation->cancel();
  } else if (const auto generation = api.live.find(*rid)) {
    generation->cancel();
  } else {
    api.engine.cancel(*rid);
  }
  call.exchange->respond({.body = ""});
}

}  // namespace winnow::server
