// Flags of the microbenchmarks beside Google Benchmark's own: --threads N and --isa NAME
// (portable, avx2 or avx512; the best one where none is given).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "backends/cpu/cpu_backend.h"

namespace winnow::bench {

struct CpuFlags {
  int threads = 2;
  const backends::KernelTable* kernels = &backends::best_kernels();

  std::unique_ptr<ops::Backend> make_backend() const {
    return std::make_unique<backends::CpuBackend>(threads, *kernels);
  }
};

// Takes our flags out of argv. Exits where the instruction set is unknown or not this CPU's.
inline CpuFlags take_cpu_flags(int& argc, char** argv) {
  CpuFlags flags;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (i + 1 == argc || (flag != "--threads" && flag != "--isa")) {
      argv[kept++] = argv[i];
    } else if (flag == "--threads") {
      flags.threads = std::atoi(argv[++i]);
    } else if (flags.kernels = backends::find_kernels(argv[++i]); flags.kernels == nullptr) {
      std::fprintf(stderr, "--isa %s: not of this CPU\n", argv[i]);
      std::exit(1);
    }
  }
  argc = kept;
  return flags;
}

}  // namespace winnow::bench
