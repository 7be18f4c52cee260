// Counts the calls of operator new on this thread. Linking it replaces operator new and delete of
// the whole test program.
#pragma once

#include <cstdint>

namespace winnow::testing {

// Since the thread began.
int64_t num_allocations();

}  // namespace winnow::testing
