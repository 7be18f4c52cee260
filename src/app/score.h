// winnow score: logits, hidden states and selected tokens of given ids, for comparing engines.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command score_command();

}  // namespace winnow::app
