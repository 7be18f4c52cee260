#include "app/serve.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

#include "app/compose.h"
#include "app/options.h"
#include "base/error.h"
#include "base/log.h"
#include "base/trace.h"
#include "server/api.h"
#include "server/generation.h"
#include "server/http_server.h"
#include "server/router.h"

namespace winnow::app {
namespace {

constexpr int64_t kWarmupTokens = 8;

// SIGINT and SIGTERM, taken by whoever waits for them. Block before any thread starts.
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }
  void wait() const {
    int number = 0;
    ::sigwait(&set_, &number);
    log::info("{}: shutting down", number == SIGINT ? "SIGINT" : "SIGTERM");
  }
  // True when one comes within the time.
  bool wait_for(double seconds) const {
    const auto whole = static_cast<time_t>(seconds);
    const timespec time{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    return ::sigtimedwait(&set_, nullptr, &time) > 0;
  }

 private:
  sigset_t set_;
};

// Ends the process at a signal while the model is being read, which may take minutes.
class InterruptibleLoading {
 public:
  explicit InterruptibleLoading(const StopSignals& signals) {
    thread_ = std::thread([this, &signals] {
      while (!over_) {
        if (signals.wait_for(0.05)) std::_Exit(0);
      }
    });
  }
  ~InterruptibleLoading() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// The first request: it tries everything out before anybody is told that the server is ready.
class WarmupSink final : public engine::TokenSink {
 public:
  void on_event(engine::TokenEvent event) override {
    if (event.finish == engine::FinishReason::kNone) return;
    const bool failed = event.finish == engine::FinishReason::kError ||
                        event.finish == engine::FinishReason::kAbort;
    done_.set_value(failed ? event.error : Status{});
  }
  std::future<Status> done() { return done_.get_future(); }

 private:
  std::promise<Status> done_;
};

void warm_up(engine::Engine& engine, const text::Tokenizer& tokenizer) {
  engine::GenerateRequest request;
  request.rid = "WARM_UP";
  request.prompt_ids =
      tokenizer.encode("The capital city of France is", text::ControlTokens::kPlain);
  const auto room = static_cast<size_t>(std::max(1, engine.options().context_length / 2));
  if (request.prompt_ids.size() > room) request.prompt_ids.resize(room);
  request.sampling.max_new_tokens = kWarmupTokens;
  request.sampling.temperature = 0;
  auto sink = std::make_shared<WarmupSink>();
  auto done = sink->done();
  Status status = engine.submit(std::move(request), sink);
  if (status.ok()) status = done.get();
  if (!status.ok()) throw_error("the warm-up request failed: {}", status.message);
  engine.flush_cache(0, [](const Status&) {});  // no visitor finds the warm-up in the cache
}

// The socket is bound before the model is read, so that a port in use shows at once; until the
// Api is there every answer is 503.
class Front {
 public:
  explicit Front(const ServeOptions& options)
      : http_(
            {.host = options.host, .port = static_cast<int>(options.port)},
            [this](server::HttpRequest request, const std::shared_ptr<server::Exchange>& exchange) {
              if (const server::Router* router = router_.load()) {
                router->handle(std::move(request), exchange);
              } else {
                server::answer_while_starting(request, *exchange);
              }
            }) {
    http_.start();
  }

  void open(const server::Router& router) { router_ = &router; }
  server::HttpServer& http() { return http_; }

 private:
  std::atomic<const server::Router*> router_{nullptr};
  server::HttpServer http_;
};

// Stops taking work, lets what runs finish for a while, cuts the rest. A second signal cuts at
// once.
void drain(Front& front, server::Api& api, const StopSignals& signals, double seconds) {
  api.state = server::ServerState::kDraining;
  front.http().stop_accepting();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  bool idle = front.http().wait_idle(0);
  while (!idle && std::chrono::steady_clock::now() < deadline && !signals.wait_for(0.01)) {
    idle = front.http().wait_idle(10);
  }
  if (!idle) {
    log::warn("{} requests are cut off", front.http().stats().open_exchanges);
    for (const auto& generation : api.live.all()) generation->cancel();
    front.http().wait_idle(1000);  // their last events leave
  }
}

void run_serve(ServeOptions& options, OptionTable& table) {
  apply_with_model_word(table);
  log::setup(options.log_level);
  check(options);
  const StopSignals signals;
  if (!options.trace.empty()) trace::start(options.trace);
  Front front(options);
  const SteadyClock clock;
  std::unique_ptr<Composition> composition;
  {
    const InterruptibleLoading loading(signals);
    composition = compose(options, clock);
    if (!options.skip_server_warmup) warm_up(*composition->engine, *composition->tokenizer);
  }
  server::ServerConfig config = server_config(options, *composition);
  options.tokenizer_path = composition->tokenizer_path;
  options.served_model_name = config.served_model_name;
  options.port = front.http().port();
  config.launch_arguments = table.as_json();
  for (auto& [key, value] : config.launch_arguments) {
    const bool secret = key == "api_key" || key == "admin_api_key";
    if (secret && !value.as_string().empty()) value = "***";
  }
  server::Api api(std::move(config), *composition->engine, *composition->tokenizer,
                  composition->chat_format.get(), clock);
  const server::Router router(api);
  api.state = server::ServerState::kReady;
  front.open(router);
  log::info("listening on http://{}:{}", options.host, front.http().port());
  log::info("The server is fired up and ready to roll!");
  signals.wait();
  drain(front, api, signals, options.drain_timeout);
  front.http().stop();
  composition->engine->stop(0);
  if (!options.trace.empty()) trace::stop();
  log::info("bye");
}

}  // namespace

Command serve_command() {
  struct State {
    ServeOptions options;
    OptionTable table = serve_option_table(options);
  };
  auto state = std::make_shared<State>();
  state->table.positional("model", state->options.model_path, "Checkpoint folder");
  Command serve = make_command("serve", "Serve a model over HTTP", state,
                               [state] { run_serve(state->options, state->table); });
  serve.markdown = options_markdown;
  return serve;
}

}  // namespace winnow::app
