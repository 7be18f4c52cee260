// winnow eval compare A B: the same questions to two servers, or two samples files.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command eval_compare_command();

}  // namespace winnow::app
