// GET /health, /health_generate, /metrics
#include <memory>

#include "server/api_error.h"
#include "server/endpoints.h"
#include "server/metrics_text.h"

namespace winnow::server {
namespace {

// Answers the probe with the first sign of life, or with the failure.
class ProbeSink final : public engine::TokenSink {
 public:
  explicit ProbeSink(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  void on_event(engine::TokenEvent event) override {
    const bool alive = event.finish != engine::FinishReason::kError &&
                       event.finish != engine::FinishReason::kAbort;
    exchange_->respond({.status = alive ? 200 : 503, .body = ""});
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace

// From the heartbeat of the engine's loop, so that a long prefill is not taken for a dead server
// (fault B110). A single step may last up to the watchdog's time.
void health(Api& api, Call& call) {
  const engine::EngineStats stats = api.engine.stats();
  const bool beating = api.clock.now_ns() - stats.last_step_ns < api.config.watchdog_ns;
  const bool healthy = api.state == ServerState::kReady && stats.alive && beating;
  call.exchange->respond({.status = healthy ? 200 : 503, .body = ""});
}

// One token through the whole engine; not counted in the metrics of requests.
void health_generate(Api& api, Call& call) {
  if (api.state != ServerState::kReady) return call.exchange->respond({.status = 503, .body = ""});
  engine::GenerateRequest request;
  request.rid = "HEALTH_CHECK_" + random_id();
  request.prompt_ids = {0};
  request.sampling.max_new_tokens = 1;
  request.sampling.temperature = 0;
  const std::string rid = request.rid;
  const Status status =
      api.engine.submit(std::move(request), std::make_shared<ProbeSink>(call.exchange));
  if (!status.ok()) return call.exchange->respond({.status = 503, .body = ""});
  call.exchange->on_gone([&engine = api.engine, rid] { engine.cancel(rid); });
}

void metrics(Api& api, Call& call) {
  call.exchange->respond(
      {.body = metrics_text(api.metrics.values(), api.engine.stats(),
                            api.engine.options().page_size, api.config.served_model_name),
       .content_type = "text/plain; version=0.0.4; charset=utf-8"});
}

}  // namespace winnow::server
