// winnow bench one: one request to a server, and its speed.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command bench_one_command();

}  // namespace winnow::app
