// The architectures Winnow runs, and what each takes for granted where config.json is silent.
#pragma once

#include <string>
#include <vector>

namespace winnow::model {

struct Family {
  const char* name;          // for people: "GLM-5 (DSA)"
  const char* architecture;  // config.json architectures[0]
  const char* model_type;    // config.json model_type
  bool has_indexer;
  // Used when indexer_rope_interleave is absent (fault B02).
  bool indexer_rope_interleave;
  bool indexer_hadamard;
  bool indexer_ue8m0_scales;
};

const std::vector<Family>& families();

// The row of this architecture and model_type; the architecture decides, model_type tells rows of
// one architecture apart. Throws Error listing what is known.
const Family& find_family(const std::string& architecture,
                          const std::string& model_type,
                          const std::string& config_path);

}  // namespace winnow::model
