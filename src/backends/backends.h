// Makers of the concrete backends. Only app/ and tests name them.
#pragma once

#include <memory>

#include "ops/backend.h"

namespace winnow::backends {

// num_threads: workers including the caller; 0 = one for each core.
std::unique_ptr<ops::Backend> make_cpu(int num_threads);

}  // namespace winnow::backends
