// Engine::flush_cache() as a future.
#pragma once

#include <cstdint>
#include <future>
#include <memory>

#include "engine/engine.h"

namespace winnow::testing {

inline std::future<Status> flush(engine::Engine& engine, int64_t wait_ns = 0) {
  auto answer = std::make_shared<std::promise<Status>>();
  engine.flush_cache(wait_ns, [answer](const Status& status) { answer->set_value(status); });
  return answer->get_future();
}

}  // namespace winnow::testing
