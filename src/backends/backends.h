// Makers of the concrete backends. Only app/ and tests name them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/backend.h"

namespace winnow::backends {

// num_threads: workers including the caller; 0 = one for each core.
std::unique_ptr<ops::Backend> make_cpu(int num_threads);

// What a model asks kernels for.
struct KernelNeeds {
  std::vector<DType> weight_dtypes;
  std::vector<layout::LatentLayout> latent_layouts;
  std::vector<layout::IndexKeyLayout> index_key_layouts;  // empty: attention is dense
};

struct ServingKernel {
  std::string op;      // "linear"
  std::string serves;  // "e4m3 weights, 1 to 4 rows"
  std::string kernel;  // names in the source, in the order in which they run
};

// What the dispatch of the CPU backend takes on this machine; the instruction set goes to isa.
std::vector<ServingKernel> cpu_kernels(const KernelNeeds& needs, std::string& isa);

// Instruction sets for which this build has kernels, best first, whatever this machine has.
std::vector<std::string> cpu_kernel_sets();

}  // namespace winnow::backends
