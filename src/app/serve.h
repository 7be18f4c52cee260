// winnow serve: the HTTP server.
#pragma once

#include "app/command.h"

namespace winnow::app {

Command serve_command();

}  // namespace winnow::app
