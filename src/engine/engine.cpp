#include "engine/engine.h"

#include <utility>

#include "engine/engine_core.h"
#include "engine/executor.h"

namespace winnow::engine {

Engine::Engine(const EngineOptions& options, std::unique_ptr<Executor> executor, const Clock& clock)
    : core_(std::make_unique<EngineCore>(options, std::move(executor), clock)) {}

Engine::~Engine() = default;

Status Engine::submit(GenerateRequest request, std::shared_ptr<TokenSink> sink) {
  return core_->submit(std::move(request), std::move(sink));
}

void Engine::cancel(std::string_view rid) { core_->end(rid, FinishReason::kAbort); }

void Engine::finish(std::string_view rid) { core_->end(rid, FinishReason::kStop); }

void Engine::cancel_all() { core_->end_all(); }

void Engine::flush_cache(int64_t wait_ns, std::function<void(const Status&)> done) {
  core_->flush_cache(wait_ns, std::move(done));
}

EngineStats Engine::stats() const { return core_->stats(); }

const EngineOptions& Engine::options() const { return core_->options(); }

void Engine::stop(int64_t drain_ns) { core_->stop(drain_ns); }

}  // namespace winnow::engine
