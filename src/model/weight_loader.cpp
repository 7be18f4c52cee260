#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "layout/float_formats.h"
#include "model/weights.h"
#include "model/weights_absorb.h"
#include "model/weights_manifest.h"
#include "model/weights_storage.h"

namespace winnow::model {

namespace {

bool is_aligned(const void* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

float read_element(const std::byte* data, DType dtype, int64_t i) {
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, data + 4 * i, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, data + 2 * i, 2);
  return dtype == DType::kBf16 ? layout::bf16_to_f32(bits) : layout::f16_to_f32(bits);
}

class WeightLoader {
 public:
  WeightLoader(const ModelConfig& config,
               const Checkpoint& checkpoint,
               ops::Backend& backend,
               const LoadOptions& options,
               bool read_ahead,
               Progress& progress)
      : config_(config),
        checkpoint_(checkpoint),
        options_(options),
        progress_(progress),
        in_place_(backend.reads_host_memory()),
        read_ahead_(read_ahead),
        storage_(backend) {}

  void load(const WeightSlot& slot) {
    const CheckpointTensor& tensor = *checkpoint_.find(slot.name);
    switch (slot.kind) {
      case WeightKind::kLinear:
      case WeightKind::kTable:
        load_linear(slot, tensor);
        break;
      case WeightKind::kVector:
        load_vector(slot, tensor);
        break;
      case WeightKind::kKvB:
        load_kv_b(slot, tensor);
        break;
    }
  }

  // Scalars that some FP8 checkpoints carry for the 576-byte cache row.
  void load_cache_scale(int32_t layer, LayerWeights& weights) {
    for (const char* name : {"k_scale", "kv_scale", "attn_mqa.k_scale"}) {
      const auto* tensor =
          checkpoint_.find(fmt::format("model.layers.{}.self_attn.{}", layer, name));
      if (tensor == nullptr) continue;
      const auto dtype = tensor->entry->dtype;
      if (tensor->entry->elements() != 1 ||
          (dtype != DType::kF32 && dtype != DType::kBf16 && dtype != DType::kF16)) {
        refuse(*tensor, "must be one floating-point number");
      }
      weights.latent_cache_scale = check_scale(*tensor, read_element(tensor->data(), *dtype, 0));
      return;
    }
  }

  void finish(ModelWeights& weights) {
    weights.mapped_bytes = mapped_bytes_;
    weights.copied_bytes = storage_.used_bytes();
    weights.buffers = storage_.take();
  }

 private:
  [[noreturn]] static void refuse(const CheckpointTensor& tensor, const std::string& what) {
    throw_error("{}: tensor {} {}", tensor.file->path(), tensor.name(), what);
  }

  static float check_scale(const CheckpointTensor& tensor, float value) {
    if (!(value > 0) || !std::isfinite(value)) {
      refuse(tensor, fmt::format("holds the scale {}, not a finite number above 0", value));
    }
    return value;
  }

  // The tensor where the backend can read it.
  const void* settle(const CheckpointTensor& tensor) {
    const int64_t bytes = tensor.entry->bytes();
    if (in_place_ && is_aligned(tensor.data(), bytes_of(*tensor.entry->dtype))) {
      mapped_bytes_ += bytes;
      if (read_ahead_) tensor.file->read_ahead(*tensor.entry);
      progress_.advance(bytes);
      return tensor.data();
    }
    const void* place = storage_.place(tensor.data(), bytes);
    progress_.advance(bytes);
    return place;
  }

  // In host memory, aligned for its elements; held keeps a copy where the file's place is not.
  static const std::byte* host_data(const CheckpointTensor& tensor, std::vector<std::byte>& held) {
    if (is_aligned(tensor.data(), bytes_of(*tensor.entry->dtype))) return tensor.data();
    held.assign(tensor.data(), tensor.data() + tensor.entry->bytes());
    return held.data();
  }

  const CheckpointTensor& checked_scales(const WeightSlot& slot) const {
    const CheckpointTensor& tensor = *checkpoint_.find(scale_name(slot.name));
    const int64_t count = tensor.entry->elements();
    for (int64_t i = 0; i < count; ++i) {
      check_scale(tensor, read_element(tensor.data(), DType::kF32, i));
    }
    return tensor;
  }

  void load_linear(const WeightSlot& slot, const CheckpointTensor& tensor) {
    ops::LinearWeight& weight = *slot.linear;
    weight.dtype = *tensor.entry->dtype;
    weight.out_features = slot.rows;
    weight.in_features = slot.cols;
    weight.data = settle(tensor);
    if (weight.dtype == DType::kE4m3) {
      weight.scale = static_cast<const float*>(settle(checked_scales(slot)));
    }
  }

  void load_vector(const WeightSlot& slot, const CheckpointTensor& tensor) {
    std::vector<float> values(static_cast<size_t>(slot.rows));
    for (int64_t i = 0; i < slot.rows; ++i) {
      values[i] = read_element(tensor.data(), *tensor.entry->dtype, i);
    }
    progress_.advance(tensor.entry->bytes());
    *slot.vector = static_cast<const float*>(storage_.place(values.data(), 4 * slot.rows));
  }

  void load_kv_b(const WeightSlot& slot, const CheckpointTensor& tensor) {
    std::vector<std::byte> held, held_scale;
    ops::LinearWeight kv_b{.data = host_data(tensor, held),
                           .dtype = *tensor.entry->dtype,
                           .scale = nullptr,
                           .out_features = slot.rows,
                           .in_features = slot.cols};
    if (kv_b.dtype == DType::kE4m3) {
      const CheckpointTensor& scales = checked_scales(slot);
      kv_b.scale = reinterpret_cast<const float*>(host_data(scales, held_scale));
      progress_.advance(scales.entry->bytes());
    }
    const int64_t heads = config_.num_attention_heads, nope = config_.qk_nope_head_dim;
    const int64_t v_dim = config_.v_head_dim, latent = config_.kv_lora_rank;
    const AbsorbedKvB halves = split_kv_b(kv_b, heads, nope, v_dim, options_.reference_precision);
    slot.kv_b->w_uk = place_half(halves.w_uk, halves.dtype, heads * latent, nope);
    slot.kv_b->w_uv = place_half(halves.w_uv, halves.dtype, heads * v_dim, latent);
    progress_.advance(tensor.entry->bytes());
  }

  ops::LinearWeight place_half(const std::vector<std::byte>& half,
                               DType dtype,
                               int64_t rows,
                               int64_t cols) {
    return {.data = storage_.place(half.data(), static_cast<int64_t>(half.size())),
            .dtype = dtype,
            .scale = nullptr,
            .out_features = rows,
            .in_features = cols};
  }

  const ModelConfig& config_;
  const Checkpoint& checkpoint_;
  const LoadOptions& options_;
  Progress& progress_;
  const bool in_place_;
  const bool read_ahead_;
  WeightStorage storage_;
  int64_t mapped_bytes_ = 0;
};

void warn_of_unknown(const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  constexpr size_t kListed = 5;
  if (names.empty()) return;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kListed); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  log::warn("{}: {} tensors are not used by this architecture: {}{}", checkpoint.path(),
            names.size(), list, names.size() > kListed ? ", ..." : "");
}

}  // namespace

ModelWeights load_weights(const ModelConfig& config,
                          std::shared_ptr<const Checkpoint> checkpoint,
                          ops::Backend& backend,
                          const LoadOptions& options,
                          Progress& progress) {
  ModelWeights weights;
  const std::vector<WeightSlot> slots = make_slots(config, weights);
  const WeightInventory inventory = check_tensors(config, *checkpoint, slots);
  warn_of_unknown(*checkpoint, inventory.unknown);
  if (inventory.has_mtp) log::debug("{}: MTP layers are skipped", checkpoint->path());

  progress.start("Loading weights", inventory.loaded_bytes());
  // A model larger than memory is read as it is used; reading it through would only push it out.
  const bool read_ahead = inventory.loaded_bytes() < backend.free_memory_bytes();
  WeightLoader loader(config, *checkpoint, backend, options, read_ahead, progress);
  for (const WeightSlot& slot : slots) loader.load(slot);
  for (int32_t i = 0; i < config.num_hidden_layers; ++i) {
    loader.load_cache_scale(i, weights.layers[i]);
  }
  if (config.tie_word_embeddings) weights.lm_head = weights.embed_tokens;
  loader.finish(weights);
  backend.synchronize();
  progress.finish();
  weights.checkpoint = std::move(checkpoint);
  return weights;
}

}  // namespace winnow::model
