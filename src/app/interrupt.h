// Ctrl-C in a command that can end early and still say what it has.
#pragma once

#include <atomic>

namespace winnow::app {

// From now on the first SIGINT or SIGTERM sets the flag, and the second ends the process at once.
const std::atomic<bool>& watch_for_interrupt();

}  // namespace winnow::app
