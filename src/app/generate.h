// winnow generate: one prompt or chat from the shell, streamed to stdout.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command generate_command();

}  // namespace winnow::app
