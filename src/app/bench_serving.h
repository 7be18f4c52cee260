// winnow bench serving: a load on any server, and the report on it.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command bench_serving_command();

}  // namespace winnow::app
