// winnow bench ops: the rates of the GPU kernels, case by case.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command bench_ops_command();

}  // namespace winnow::app
