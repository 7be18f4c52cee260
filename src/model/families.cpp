#include "model/families.h"

#include <set>
#include <string_view>

#include "base/error.h"

namespace winnow::model {

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {.name = "GLM-5",
       .architecture = "GlmMoeDsaForCausalLM",
       .model_type = "glm_moe_dsa",
       .has_indexer = true,
       .indexer_rope_interleave = true,
       .indexer_hadamard = false,
       .indexer_ue8m0_scales = false},
      {.name = "DeepSeek-V3.2",
       .architecture = "DeepseekV32ForCausalLM",
       .model_type = "deepseek_v32",
       .has_indexer = true,
       .indexer_rope_interleave = false,
       .indexer_hadamard = true,
       .indexer_ue8m0_scales = true},
      {.name = "DeepSeek-V3",
       .architecture = "DeepseekV3ForCausalLM",
       .model_type = "deepseek_v3",
       .has_indexer = false,
       .indexer_rope_interleave = false,
       .indexer_hadamard = false,
       .indexer_ue8m0_scales = false},
      {.name = "Kimi-K2",
       .architecture = "DeepseekV3ForCausalLM",
       .model_type = "kimi_k2",
       .has_indexer = false,
       .indexer_rope_interleave = false,
       .indexer_hadamard = false,
       .indexer_ue8m0_scales = false},
  };
  return kFamilies;
}

const Family& find_family(const std::string& architecture,
                          const std::string& model_type,
                          const std::string& config_path) {
  const Family* same_architecture = nullptr;
  for (const Family& family : families()) {
    if (architecture != family.architecture) continue;
    if (model_type == family.model_type) return family;
    if (same_architecture == nullptr) same_architecture = &family;
  }
  if (same_architecture != nullptr) return *same_architecture;
  std::set<std::string_view> known;
  for (const Family& family : families()) known.insert(family.architecture);
  std::string list;
  for (std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
  throw_error("{}: architecture {} (model_type {}) is not supported; known: {}", config_path,
              architecture.empty() ? "(none)" : architecture,
              model_type.empty() ? "(none)" : model_type, list);
}

}  // namespace winnow::model
