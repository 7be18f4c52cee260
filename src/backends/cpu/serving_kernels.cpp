// Names the bodies that the ops take: asks the same tables and functions that dispatch them.
#include <fmt/format.h>

#include "backends/backends.h"
#include "backends/cpu/index_keys.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/latent_cache.h"
#include "backends/cpu/linear.h"

namespace winnow::backends {

std::vector<ServingKernel> cpu_kernels(const KernelNeeds& needs, std::string& isa) {
  const KernelTable& table = best_kernels();
  isa = table.isa;
  std::vector<ServingKernel> rows;
  for (const DType dtype : needs.weight_dtypes) {
    const char* name = tile_kernel(table, dtype).name;
    rows.push_back({"linear", fmt::format("{} weights, 1 to {} rows", to_string(dtype), kFewRows),
                    fmt::format("{}, {}, few_rows", table.pack_rows.name, name)});
    rows.push_back({"linear", fmt::format("{} weights, more rows", to_string(dtype)),
                    fmt::format("{}, {}, many_rows", table.pack_rows.name, name)});
  }
  for (const auto layout : needs.index_key_layouts) {
    rows.push_back({"index logits", to_string(layout),
                    fmt::format("{}, {}, {}", index_key_reader_name(layout), table.product.name,
                                table.combine_heads.name)});
  }
  const bool is_sparse = !needs.index_key_layouts.empty();
  if (is_sparse) rows.push_back({"top-k", "any row", "best_positions"});
  for (const auto layout : needs.latent_layouts) {
    rows.push_back({is_sparse ? "sparse MLA" : "dense MLA", to_string(layout),
                    fmt::format("{}, {}, {}", latent_reader_name(layout), table.attend_group.name,
                                table.merge_states.name)});
  }
  rows.push_back({"norm", "any row", table.rms_norm.name});
  rows.push_back({"SiLU", "any row", table.silu_mul.name});
  return rows;
}

std::vector<std::string> cpu_kernel_sets() {
  std::vector<std::string> names;
  for (int64_t i = 0; const KernelTable* table = compiled_kernels(i); ++i) {
    names.emplace_back(table->isa);
  }
  return names;
}

}  // namespace winnow::backends
