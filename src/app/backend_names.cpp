// Attention backend names, SGLang's and our own, to the cache layouts that they stand for.
#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "app/options.h"
#include "base/error.h"

namespace winnow::app {
namespace {

using layout::LatentLayout;

struct BackendName {
  std::string_view name;
  std::optional<LatentLayout> with_fp8;
  std::optional<LatentLayout> with_bf16;
};

constexpr BackendName kBackendNames[] = {
    {"flashmla_sparse", LatentLayout::kFp8_656, LatentLayout::kBf16_1152},
    {"flashmla_kv", LatentLayout::kFp8_656, std::nullopt},
    {"flashmla_auto", LatentLayout::kFp8_656, LatentLayout::kBf16_1152},
    {"trtllm", LatentLayout::kFp8_576, LatentLayout::kBf16_1152},
    {"winnow", LatentLayout::kFp8_644, LatentLayout::kBf16_1152},
};

const BackendName* find(std::string_view name) {
  for (const BackendName& row : kBackendNames) {
    if (row.name == name) return &row;
  }
  return nullptr;  // auto
}

std::optional<LatentLayout> layout_of(const BackendName& row, bool fp8) {
  return fp8 ? row.with_fp8 : row.with_bf16;
}

std::string pairs_that_work(bool fp8) {
  std::string out;
  for (const BackendName& prefill : kBackendNames) {
    for (const BackendName& decode : kBackendNames) {
      const auto layout = layout_of(prefill, fp8);
      if (!layout || layout != layout_of(decode, fp8)) continue;
      out += fmt::format("{}{} + {}", out.empty() ? "" : ", ", prefill.name, decode.name);
    }
  }
  return out;
}

}  // namespace

layout::LatentLayout choose_latent_layout(const ServeOptions& options, bool fp8_checkpoint) {
  const BackendName* prefill = find(options.prefill_backend);
  const BackendName* decode = find(options.decode_backend);
  const bool needs_fp8 =
      (prefill != nullptr && !prefill->with_bf16) || (decode != nullptr && !decode->with_bf16);
  const bool fp8 = options.kv_cache_dtype == "fp8_e4m3" ||
                   (options.kv_cache_dtype == "auto" && (fp8_checkpoint || needs_fp8));
  const LatentLayout usual = fp8 ? LatentLayout::kFp8_656 : LatentLayout::kBf16_1152;
  if (prefill == nullptr && decode == nullptr) return usual;
  if (prefill == nullptr) prefill = decode;  // auto follows the other
  if (decode == nullptr) decode = prefill;
  const auto for_prefill = layout_of(*prefill, fp8);
  const auto for_decode = layout_of(*decode, fp8);
  if (for_prefill && for_prefill == for_decode) return *for_prefill;
  throw_error(
      "--dsa-prefill-backend {} with --dsa-decode-backend {} needs two cache layouts with "
      "--kv-cache-dtype {}; pairs that work (prefill + decode): {}",
      prefill->name, decode->name, fp8 ? "fp8_e4m3" : "bfloat16", pairs_that_work(fp8));
}

}  // namespace winnow::app
