// Any bytes as config.json, split at the first zero byte into config and generation config: refused
// with an Error or a config whose weights can be listed.
#include <cstdint>

#include "base/error.h"
#include "base/log.h"
#include "model/config.h"
#include "model/weights_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = [] {
    winnow::log::setup("error");
    return true;
  }();
  (void)quiet;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t zero = bytes.find('\0');
  const std::string_view generation =
      zero == std::string_view::npos ? std::string_view() : bytes.substr(zero + 1);
  try {
    const auto config = winnow::model::parse_config(bytes.substr(0, zero), "config.json",
                                                    generation, "generation_config.json");
    winnow::model::inverse_frequencies(config.rope_parameters, config.qk_rope_head_dim);
    // A real model has 19 thousand experts in all; a config may say 2^24 a layer.
    if (int64_t{config.n_routed_experts} * config.num_moe_layers() > 100'000) return 0;
    winnow::model::ModelWeights weights;
    const auto slots = winnow::model::make_slots(config, weights);
    WINNOW_CHECK(!slots.empty(), "{} layers", config.num_hidden_layers);
  } catch (const winnow::Error&) {
  }
  return 0;
}
