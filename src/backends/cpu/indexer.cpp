#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/index_keys.h"
#include "backends/cpu/quantize.h"
#include "backends/cpu/rotary.h"
#include "backends/cpu/row_math.h"
#include "base/error.h"

namespace winnow::backends {

namespace {

constexpr int64_t kMaxHeadDim = 256;

void rotate_and_mix(float* head,
                    int64_t dim,
                    const ops::RopeTable& rope,
                    int64_t position,
                    const ops::IndexerNumerics& numerics) {
  if (numerics.rope_interleave) {
    rotate_interleaved(head, rope, position);
  } else {
    rotate_half_split(head, rope, position);
  }
  if (numerics.hadamard) hadamard_transform(head, dim);
}

void check_numerics(const ops::IndexerNumerics& numerics, const ops::RopeTable& rope, int64_t dim) {
  WINNOW_CHECK(rope.dim <= dim && rope.dim % 2 == 0, "rope dim {} of {}", rope.dim, dim);
  WINNOW_CHECK(dim <= kMaxHeadDim, "index_head_dim {}", dim);
  WINNOW_CHECK(!numerics.hadamard || (dim & (dim - 1)) == 0, "Hadamard of {}", dim);
}

float index_scale(const float* values, int64_t dim, bool ue8m0) {
  const float scale = e4m3_scale(values, dim, layout::kAmaxFloor);
  return ue8m0 ? layout::ceil_to_power_of_two(scale) : scale;
}

// LayerNorm with its own eps and bias (fault B05). Two passes: mean, then variance around it.
void layer_norm(
    const float* x, const float* weight, const float* bias, int64_t dim, float eps, float* out) {
  float mean = 0;
  for (int64_t i = 0; i < dim; ++i) mean += x[i];
  mean /= static_cast<float>(dim);
  for (int64_t i = 0; i < dim; ++i) out[i] = x[i] - mean;
  const float variance = dot(out, out, dim) / static_cast<float>(dim);
  const float factor = 1.0f / std::sqrt(variance + eps);
  for (int64_t i = 0; i < dim; ++i) out[i] = out[i] * factor * weight[i] + bias[i];
}

}  // namespace

void CpuBackend::index_query(const ops::IndexQueryArgs& args) {
  const int64_t heads = args.index_n_heads, dim = args.index_head_dim;
  check_numerics(args.numerics, args.rope, dim);
  const float factor = 1.0f / std::sqrt(static_cast<float>(heads * dim));
  pool_.parallel_for(args.rows->num_rows, [&](int64_t t, int) {
    float head[kMaxHeadDim];
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t idx = t * heads + h;
      const float* q = static_cast<const float*>(args.q) + idx * dim;
      std::copy(q, q + dim, head);
      rotate_and_mix(head, dim, args.rope, args.rows->positions[t], args.numerics);
      float scale = 1.0f;
      switch (args.numerics.query_format) {
        case ops::IndexFormat::kF32:
          std::copy(head, head + dim, static_cast<float*>(args.q_out) + idx * dim);
          break;
        case ops::IndexFormat::kBf16:
          for (int64_t i = 0; i < dim; ++i) {
            static_cast<uint16_t*>(args.q_out)[idx * dim + i] = layout::f32_to_bf16(head[i]);
          }
          break;
        case ops::IndexFormat::kFp8:
          scale = index_scale(head, dim, args.numerics.ue8m0_scales);
          quantize_e4m3(head, dim, scale, static_cast<uint8_t*>(args.q_out) + idx * dim);
          break;
      }
      args.head_weights[idx] = args.gates[idx] * factor * scale;
    }
  });
}

void CpuBackend::append_index_key(const ops::AppendIndexKeyArgs& args) {
  const int64_t dim = args.cache.geometry.index_head_dim;
  check_numerics(args.numerics, args.rope, dim);
  WINNOW_CHECK(args.cache.page_stride_bytes >= args.cache.geometry.page_bytes(), "page stride {}",
               args.cache.page_stride_bytes);
  pool_.parallel_for(args.rows->num_rows, [&](int64_t t, int) {
    const int64_t slot = args.rows->write_slots[t];
    if (slot < 0) return;
    WINNOW_CHECK(slot < int64_t{args.cache.num_pages} * args.cache.geometry.page_size, "slot {}",
                 slot);
    float key[kMaxHeadDim];
    layer_norm(static_cast<const float*>(args.k) + t * dim, args.norm_weight, args.norm_bias, dim,
               args.norm_eps, key);
    rotate_and_mix(key, dim, args.rope, args.rows->positions[t], args.numerics);
    write_index_key(args.cache, slot, key, index_scale(key, dim, args.numerics.ue8m0_scales));
  });
}

// Query rows of one op as fp32, [T, Hi, D].
static const float* queries_as_f32(const void* q,
                                   ops::IndexFormat format,
                                   int64_t first_row,
                                   int64_t rows,
                                   int64_t row_elements,
                                   float* scratch) {
  const int64_t begin = first_row * row_elements, count = rows * row_elements;
  switch (format) {
    case ops::IndexFormat::kF32:
      return static_cast<const float*>(q) + begin;
    case ops::IndexFormat::kBf16:
      for (int64_t i = 0; i < count; ++i) {
        scratch[i] = layout::bf16_to_f32(static_cast<const uint16_t*>(q)[begin + i]);
      }
      return scratch;
    case ops::IndexFormat::kFp8:
      for (int64_t i = 0; i < count; ++i) {
        scratch[i] = layout::e4m3_to_f32(static_cast<const uint8_t*>(q)[begin + i]);
      }
      return scratch;
  }
  return nullptr;
}

void CpuBackend::index_logits(const ops::IndexLogitsArgs& args) {
  const ops::BatchRows& rows = *args.rows;
  const int64_t heads = args.index_n_heads, dim = args.cache.geometry.index_head_dim;
  const int64_t page_size = args.cache.geometry.page_size;
  const int64_t chunk = static_cast<int64_t>(workspace_.index_queries.size()) / (heads * dim);
  WINNOW_CHECK(chunk > 0, "index heads {} x {}", heads, dim);
  for (int64_t first = 0; first < rows.num_rows; first += chunk) {
    const int64_t count = std::min<int64_t>(chunk, rows.num_rows - first);
    const float* q = queries_as_f32(args.q, args.query_format, first, count, heads * dim,
                                    workspace_.index_queries.data());
    pool_.parallel_for(count, [&](int64_t r, int) {
      const int64_t t = first + r;
      const int32_t* pages = rows.page_tables + rows.seq_of_row[t] * rows.page_table_stride;
      float* logits = args.logits + t * args.logits_stride;
      for (int64_t s = args.key_begin; s < args.key_end; ++s) {
        if (s > rows.positions[t]) {
          logits[s - args.key_begin] = -std::numeric_limits<float>::infinity();
          continue;
        }
        float key[kMaxHeadDim];
        const int64_t slot = pages[s / page_size] * page_size + s % page_size;
        const float scale = read_index_key(args.cache, slot, key);
        float sum = 0;
        for (int64_t h = 0; h < heads; ++h) {
          const float product = dot(q + (r * heads + h) * dim, key, dim);
          sum += (product > 0 ? product : 0.0f) * args.head_weights[t * heads + h];
        }
        logits[s - args.key_begin] = sum * scale;
      }
    });
  }
}

}  // namespace winnow::backends
