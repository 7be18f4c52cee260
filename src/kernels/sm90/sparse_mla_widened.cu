// Sparse MLA over e4m3 caches for more heads than the tokens' side can feed: 64 heads a block, M of
// both products, on the f16 tensor cores. Producers load tokens to registers, a stage ahead of the
// room for them, and widen them into swizzled tiles (2 stages of 64 tokens). With more than 64
// heads two blocks form a cluster: each widens half of the tokens and writes them to both.
//   warpgroup 0     S = Q K^T, softmax, O += P V for the first 256 channels, P from registers
//   warpgroup 1     O += P V for the other 256, P from shared memory
//   warpgroup 2     producer
// The maximum moves only when a logit passes it by 2^kMaxSlack, so O is seldom rescaled.
#include "kernels/sm90/sparse_mla_widened.cuh"

#include "kernels/device/wgmma.cuh"
#include "kernels/sm90/launch.cuh"

namespace winnow::kernels::sm90 {
namespace widened {
namespace {

constexpr int kLeadRegisters = 192, kSecondRegisters = 168, kProducerRegisters = 144;
// What 384 threads of 168 registers have.
static_assert(kLeadRegisters + kSecondRegisters + kProducerRegisters == 504);

// Half of the lines a warpgroup: queries as f16, each line scaled by a power of two of its own;
// roped channels are kUnit larger beside the latent ones, which the cache stores times kUnit.
template <LatentLayout kLayout>
__device__ __forceinline__ void load_queries(const SparseMlaCall& call,
                                             const SparseMlaItem& item,
                                             Shared& shared,
                                             uint32_t round) {
  constexpr int kAtOnce = 4;
  const int warp = threadIdx.x / 32 % 8, lane = threadIdx.x % 32;
  const auto widen_bf16 = [](uint4 from, float(&to)[8]) {
    const uint32_t words[4] = {from.x, from.y, from.z, from.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      to[k * 2] = __uint_as_float(words[k] << 16);
      to[k * 2 + 1] = __uint_as_float(words[k] & 0xffff0000u);
    }
  };
#pragma unroll 1
  for (int first = 0; first < 8; first += kAtOnce) {
    uint4 raw[kAtOnce][3];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int head = item.head_begin + warp * 8 + first + k;
      const bool in = head < call.p.num_heads;
      const int64_t at = item.row * call.p.num_heads + (in ? head : 0);
      const auto* latent = reinterpret_cast<const uint4*>(
          static_cast<const __nv_bfloat16*>(call.p.q_latent) + at * kLatentDim);
      const auto* rope = reinterpret_cast<const uint4*>(
          static_cast<const __nv_bfloat16*>(call.p.q_rope) + at * kRopeDim);
      raw[k][0] = raw[k][1] = raw[k][2] = make_uint4(0, 0, 0, 0);
      if (in) {
        raw[k][0] = __ldg(latent + lane);
        raw[k][1] = __ldg(latent + 32 + lane);
        if (lane < 8) raw[k][2] = __ldg(rope + lane);
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int line = warp * 8 + first + k;
      float high = 0;
#pragma unroll
      for (int part = 0; part < 3; ++part) {
        float v[8];
        widen_bf16(raw[k][part], v);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          high = fmaxf(high, fabsf(part == 2 ? v[c] * Traits<kLayout>::kUnit : v[c]));
        }
      }
#pragma unroll
      for (int d = 16; d > 0; d /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, d));
      const int exponent = static_cast<int>(__float_as_uint(high) >> 23) - 127;
      int shift = high > 0 && exponent < 128 ? kQueryExponent - exponent : 0;
      shift = min(max(shift, -120), 120);
      const float up = __uint_as_float(static_cast<uint32_t>(shift + 127) << 23);
      if (lane == 0) {
        shared.unscale[line] = __uint_as_float(static_cast<uint32_t>(127 - shift) << 23);
      }
      const uint32_t to = smem_address(shared.q) + line * 128 + ((lane % 8 ^ (line & 7)) << 4);
#pragma unroll
      for (int part = 0; part < 3; ++part) {
        if (part == 2 && lane >= 8) continue;
        float v[8];
        widen_bf16(raw[k][part], v);
        const float factor = part == 2 ? up * Traits<kLayout>::kUnit : up;
        const uint4 out = make_uint4(
            pack_half(v[0] * factor, v[1] * factor), pack_half(v[2] * factor, v[3] * factor),
            pack_half(v[4] * factor, v[5] * factor), pack_half(v[6] * factor, v[7] * factor));
        store_shared_16(to + (part * 4 + lane / 8) * kTileBytes, out);
      }
    }
  }
  fence_proxy_async();
  shared.queries.arrive();
  shared.queries.wait(round & 1);
}

// This warp is done with the stage, here and, for what the other block wrote, there.
template <int kBlocks>
__device__ __forceinline__ void release(Shared& shared, uint32_t stage) {
  if (threadIdx.x % 32 == 0) {
    shared.empty[stage].arrive();
    if constexpr (kBlocks == 2) {
      cluster_arrive(cluster_address(smem_address(&shared.empty[stage]), cluster_rank() ^ 1));
    }
  }
}

// Rescales what is summed up; o[c][n * 4 + 2 r ..] belongs to tile line row + 8 r.
__device__ __forceinline__ void rescale(float (&o)[2][64], float f0, float f1) {
  if (!__any_sync(0xffffffffu, f0 != 1.0f || f1 != 1.0f)) return;
#pragma unroll
  for (int n = 0; n < 16; ++n) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      o[c][n * 4] *= f0;
      o[c][n * 4 + 1] *= f0;
      o[c][n * 4 + 2] *= f1;
      o[c][n * 4 + 3] *= f1;
    }
  }
}

// o[n / 16][n % 16 * 4 + 2r + c] is tile line row + 8r, column 8n + 2t + c of this warpgroup's 256.
__device__ __forceinline__ void store_outputs(const SparseMlaCall& call,
                                              const SparseMlaItem& item,
                                              const float (&o)[2][64],
                                              const float (&inverse)[2],
                                              int row,
                                              int column_begin) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = item.head_begin + row + r * 8;
    const bool in = head < call.p.num_heads;
    if (call.num_splits > 1) {
      const int64_t at = (item.row * call.num_splits + item.split) * call.p.num_heads + head;
      float* to = call.partial_out + at * kLatentDim + column_begin + t * 2;
#pragma unroll
      for (int n = 0; n < 32; ++n) {
        if (in) {
          *reinterpret_cast<float2*>(to + n * 8) =
              make_float2(o[n / 16][n % 16 * 4 + r * 2] * inverse[r],
                          o[n / 16][n % 16 * 4 + r * 2 + 1] * inverse[r]);
        }
      }
      continue;
    }
    auto* to = static_cast<__nv_bfloat16*>(call.p.out) +
               (item.row * call.p.num_heads + head) * kLatentDim + column_begin + t * 8;
#pragma unroll
    for (int n = 0; n < 32; n += 4) {
      // A 4 x 4 transpose among the four threads of a line: thread t ends with the 8 columns of
      // n + t.
      uint32_t v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        v[k] = pack_bf16(o[n / 16][(n + k) % 16 * 4 + r * 2] * inverse[r],
                         o[n / 16][(n + k) % 16 * 4 + r * 2 + 1] * inverse[r]);
      }
      const bool odd = (t & 1) != 0, high = (t & 2) != 0;
      const uint32_t x0 = __shfl_xor_sync(0xffffffffu, odd ? v[0] : v[1], 1);
      const uint32_t x1 = __shfl_xor_sync(0xffffffffu, odd ? v[2] : v[3], 1);
      const uint32_t w0 = odd ? x0 : v[0], w1 = odd ? v[1] : x0;
      const uint32_t w2 = odd ? x1 : v[2], w3 = odd ? v[3] : x1;
      const uint32_t y0 = __shfl_xor_sync(0xffffffffu, high ? w0 : w2, 2);
      const uint32_t y1 = __shfl_xor_sync(0xffffffffu, high ? w1 : w3, 2);
      const uint4 line = high ? make_uint4(y0, y1, w2, w3) : make_uint4(w0, w1, y0, y1);
      if (in) *reinterpret_cast<uint4*>(to + n * 8) = line;
    }
  }
}

// Scores of one stage: s[n * 4 + 2r + c] is line row + 8r, token 8n + 2t + c.
__device__ __forceinline__ void multiply_scores(const Shared& shared,
                                                uint32_t stage,
                                                float (&s)[32]) {
  const uint64_t k_tile = wgmma_descriptor(smem_address(shared.kv[stage]));
  const uint64_t q_tile = wgmma_descriptor(smem_address(shared.q));
  wgmma_fence();
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int at = (tile * kTileBytes + k * 32) >> 4;
      wgmma_f16_ss(s, q_tile + at, k_tile + at, tile + k > 0);
    }
  }
  wgmma_commit();
}

// Which tokens of the stage count, read by the lane that hands the stage back.
__device__ __forceinline__ uint4 stage_flags(const Shared& shared, uint32_t stage) {
  uint4 flags = make_uint4(0, 0, 0, 0);
  if (threadIdx.x % 32 == 0) flags = *reinterpret_cast<const uint4*>(shared.valid[stage]);
  flags.x = __shfl_sync(0xffffffffu, flags.x, 0);
  flags.y = __shfl_sync(0xffffffffu, flags.y, 0);
  flags.z = __shfl_sync(0xffffffffu, flags.z, 0);
  flags.w = __shfl_sync(0xffffffffu, flags.w, 0);
  return flags;
}

__device__ __forceinline__ void mask_scores(uint4 valid, float (&s)[32]) {
  if ((valid.x & valid.y & valid.z & valid.w) == 0x0f0f0f0fu) return;
  const int t = threadIdx.x % 4;
  const uint32_t words[4] = {valid.x, valid.y, valid.z, valid.w};
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    // Tokens 8n + 2t and the next: byte 2n + t / 2, bits 2 (t % 2) and the next.
    const uint32_t bits = words[n / 2] >> (n % 2 * 16 + t / 2 * 8 + t % 2 * 2);
    if ((bits & 1) == 0) s[n * 4] = s[n * 4 + 2] = -INFINITY;
    if ((bits & 2) == 0) s[n * 4 + 1] = s[n * 4 + 3] = -INFINITY;
  }
}

// Scores become weights; factor: what the sums so far are to be multiplied by.
__device__ __forceinline__ void soften(float (&s)[32],
                                       const float (&scale)[2],
                                       bool first,
                                       float (&top)[2],
                                       float (&sum)[2],
                                       float (&factor)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float high = s[r * 2];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      high = fmaxf(high, fmaxf(s[n * 4 + r * 2], s[n * 4 + r * 2 + 1]));
    }
    high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
    high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
    high *= scale[r];
    factor[r] = 1.0f;
    if (high > top[r] + kMaxSlack) {
      if (!first) factor[r] = exp2_fast(top[r] - high);
      top[r] = high;
    }
    const float base = top[r] == -INFINITY ? 0.0f : top[r];
    float added = 0;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float& x = s[n * 4 + r * 2 + c];
        x = exp2_fast(fmaf(x, scale[r], -base));
        added += x;
      }
    }
    sum[r] = sum[r] * factor[r] + added;
  }
}

template <LatentLayout kLayout, int kBlocks>
__device__ __forceinline__ void lead(const SparseMlaCall& call, Shared& shared) {
  using T = Traits<kLayout>;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int row = threadIdx.x / 32 % 4 * 16 + g;  // and row + 8
  const uint32_t p_to = smem_address(shared.p) + row * 128 + t * 4;
  uint32_t step = 0, round = 0;
  const int64_t items = sparse_mla_items(call);
  for (int64_t i = blockIdx.x; i < items; i += gridDim.x, ++round) {
    SparseMlaItem item = sparse_mla_place(call, i, kHeads);
    load_queries<kLayout>(call, item, shared, round);
    bound_by_length(call, item);
    const int blocks = (item.end - item.begin + kTokens - 1) / kTokens;
    float scale[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      scale[r] = call.p.softmax_scale * kLog2e * shared.unscale[row + r * 8] *
                 (call.p.cache_scale / T::kUnit);
    }
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    float o[2][64];
#pragma unroll
    for (int k = 0; k < 64; ++k) o[0][k] = o[1][k] = 0;
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages;
      shared.full[stage].wait(step / kStages & 1);
      fence_proxy_async();
      float s[32], factor[2];
      multiply_scores(shared, stage, s);
      const uint4 valid = stage_flags(shared, stage);
      wgmma_wait<0>();
      wgmma_pin(s);
      mask_scores(valid, s);
      soften(s, scale, block == 0, top, sum, factor);
      uint32_t p[4][4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int k = 0; k < 4; ++k) p[q][k] = pack_half(s[q * 8 + k * 2], s[q * 8 + k * 2 + 1]);
      }
      shared.p_empty.wait((step & 1) ^ 1);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const uint32_t at = p_to + ((n ^ g) << 4);
        store_shared_4(at, p[n / 2][n % 2 * 2]);
        store_shared_4(at + 8 * 128, p[n / 2][n % 2 * 2 + 1]);
      }
      if (t == 0) {
        shared.rescale[row] = factor[0];
        shared.rescale[row + 8] = factor[1];
      }
      fence_proxy_async();
      shared.p_full.arrive();
      rescale(o, factor[0], factor[1]);
      const uint64_t v = wgmma_descriptor(smem_address(shared.kv[stage]), kTileBytes);
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      wgmma_fence();
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const uint64_t b = v + ((q * 2048) >> 4);
        wgmma_f16_rs_nt(o[0], p[q], b, 1);
        wgmma_f16_rs_nt(o[1], p[q], b + ((2 * kTileBytes) >> 4), 1);
      }
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      release<kBlocks>(shared, stage);
    }
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
      inverse[r] = sum[r] > 0 ? call.p.cache_scale / (sum[r] * T::kUnit) : 0.0f;
      const int head = item.head_begin + row + r * 8;
      if (t == 0) shared.inverse_sum[row + r * 8] = inverse[r];
      if (t == 0 && head < call.p.num_heads) {
        const float lse = sum[r] > 0 ? top[r] + log2_fast(sum[r]) : -INFINITY;
        if (call.num_splits > 1) {
          call.partial_lse[(item.row * call.num_splits + item.split) * call.p.num_heads + head] =
              lse;
        } else if (call.p.lse != nullptr) {
          call.p.lse[item.row * call.p.num_heads + head] = lse * kLn2;
        }
      }
    }
    shared.sums.arrive();
    shared.sums.wait(round & 1);
    store_outputs(call, item, o, inverse, row, 0);
  }
}

template <LatentLayout kLayout, int kBlocks>
__device__ __forceinline__ void second(const SparseMlaCall& call, Shared& shared) {
  const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
  uint32_t step = 0, round = 0;
  const int64_t items = sparse_mla_items(call);
  for (int64_t i = blockIdx.x; i < items; i += gridDim.x, ++round) {
    SparseMlaItem item = sparse_mla_place(call, i, kHeads);
    load_queries<kLayout>(call, item, shared, round);
    bound_by_length(call, item);
    const int blocks = (item.end - item.begin + kTokens - 1) / kTokens;
    float o[2][64];
#pragma unroll
    for (int k = 0; k < 64; ++k) o[0][k] = o[1][k] = 0;
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages;
      shared.p_full.wait(step & 1);
      rescale(o, shared.rescale[row], shared.rescale[row + 8]);
      const uint64_t p = wgmma_descriptor(smem_address(shared.p));
      const uint64_t v =
          wgmma_descriptor(smem_address(shared.kv[stage]) + 4 * kTileBytes, kTileBytes);
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      wgmma_fence();
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const uint64_t a = p + ((q * 32) >> 4), b = v + ((q * 2048) >> 4);
        wgmma_f16_ss_nt(o[0], a, b, 1);
        wgmma_f16_ss_nt(o[1], a, b + ((2 * kTileBytes) >> 4), 1);
      }
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      release<kBlocks>(shared, stage);
      shared.p_empty.arrive();
    }
    shared.sums.arrive();
    shared.sums.wait(round & 1);
    const float inverse[2] = {shared.inverse_sum[row], shared.inverse_sum[row + 8]};
    store_outputs(call, item, o, inverse, row, 256);
  }
}

template <LatentLayout kLayout, int kBlocks>
__global__ void __launch_bounds__(kThreads, 1)
    sparse_mla_widened_kernel(const __grid_constant__ SparseMlaCall call) {
  extern __shared__ __align__(1024) uint8_t raw[];
  auto& shared = *reinterpret_cast<Shared*>(raw);
  if (threadIdx.x == 0) {
    if (smem_address(raw) % 1024 != 0) __trap();  // the swizzled tiles need it
    for (int s = 0; s < kStages; ++s) {
      shared.full[s].init(kProducerWarps);
      shared.empty[s].init(8 * kBlocks);
    }
    shared.p_full.init(128);
    shared.p_empty.init(128);
    shared.queries.init(256);
    shared.sums.init(256);
    fence_mbarrier_init();
  }
  if constexpr (kBlocks == 2) {
    cluster_sync();
  } else {
    __syncthreads();
  }
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  const int role = warp_uniform(threadIdx.x / 128);
  if (role == 0) {
    grow_registers<kLeadRegisters>();
    lead<kLayout, kBlocks>(call, shared);
  } else if (role == 1) {
    grow_registers<kSecondRegisters>();
    second<kLayout, kBlocks>(call, shared);
  } else {
    shrink_registers<kProducerRegisters>();
    Producer<kLayout, kBlocks> producer(call, shared);
    producer.run();
  }
  if constexpr (kBlocks == 2) cluster_sync();  // nobody writes here any more
}

template <LatentLayout kLayout, int kBlocks>
cudaError_t launch(const SparseMlaCall& call, int grid, cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared);
  static_assert(kBytes <= 232448, "the shared memory of a block");
  const auto kernel = sparse_mla_widened_kernel<kLayout, kBlocks>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  return launch_overlapped(
      kernel, {.blocks = grid, .threads = kThreads, .bytes = kBytes, .cluster = kBlocks}, stream,
      call);
}

}  // namespace
}  // namespace widened

cudaError_t launch_sparse_mla_widened(const SparseMlaCall& call,
                                      layout::LatentLayout layout,
                                      int grid,
                                      cudaStream_t stream) {
  if (layout != layout::LatentLayout::kFp8_656) return cudaErrorInvalidValue;
  return call.head_tiles == 1
             ? widened::launch<layout::LatentLayout::kFp8_656, 1>(call, grid, stream)
             : widened::launch<layout::LatentLayout::kFp8_656, 2>(call, grid, stream);
}

}  // namespace winnow::kernels::sm90
