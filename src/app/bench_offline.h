// winnow bench offline: the engine's speed without a server, against the machine's own limits.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command bench_offline_command();

}  // namespace winnow::app
