#include "rival.h"

namespace winnow::bench {

Rival* make_rival(const float*, int64_t, int64_t, int64_t, bool, int) { return nullptr; }

}  // namespace winnow::bench
