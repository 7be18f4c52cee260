// winnow inspect: what a checkpoint folder holds, what it costs and what would serve it.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command inspect_command();

}  // namespace winnow::app
