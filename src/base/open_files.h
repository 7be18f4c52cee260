// The limit of open files, which many connections run into.
#pragma once

#include <cstdint>

namespace winnow {

// Raises the soft limit to the hard one. How many files this process may have open now.
int64_t raise_open_file_limit();

}  // namespace winnow
