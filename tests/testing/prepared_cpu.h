// The CPU backend as op tests use it: prepared for every case, on one instruction set.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "testing/op_cases.h"

namespace winnow::testing {

inline std::unique_ptr<backends::CpuBackend> prepared_cpu(
    int num_threads = 2, const backends::KernelTable& kernels = backends::best_kernels()) {
  auto backend = std::make_unique<backends::CpuBackend>(num_threads, kernels);
  backend->prepare(case_shape());
  return backend;
}

// What this machine can run.
inline std::vector<const backends::KernelTable*> all_kernels() {
  std::vector<const backends::KernelTable*> tables;
  for (const char* isa : {"portable", "avx2", "avx512"}) {
    if (const backends::KernelTable* table = backends::find_kernels(isa)) tables.push_back(table);
  }
  return tables;
}

}  // namespace winnow::testing
