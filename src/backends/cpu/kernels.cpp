#include "backends/cpu/kernels.h"

#include <cstring>
#include <iterator>

namespace winnow::backends {

namespace portable {
extern const KernelTable kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}
#endif

namespace {

struct Row {
  const KernelTable* table;
  bool (*runs_here)();
};

// Best first.
const Row kRows[] = {
#if defined(__x86_64__)
    {&avx512::kTable,
     [] {
       return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
              __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
     }},
    {&avx2::kTable,
     [] { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }},
#endif
    {&portable::kTable, [] { return true; }},
};

}  // namespace

const KernelTable& best_kernels() {
  for (const Row& row : kRows) {
    if (row.runs_here()) return *row.table;
  }
  return portable::kTable;
}

const KernelTable* compiled_kernels(int64_t index) {
  return index < std::ssize(kRows) ? kRows[index].table : nullptr;
}

const KernelTable* find_kernels(const char* isa) {
  for (const Row& row : kRows) {
    if (std::strcmp(row.table->isa, isa) == 0 && row.runs_here()) return row.table;
  }
  return nullptr;
}

}  // namespace winnow::backends
