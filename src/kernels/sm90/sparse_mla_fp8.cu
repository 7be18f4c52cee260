// Sparse MLA over e4m3 caches without widening them: both products run on the e4m3 tensor cores.
// Tokens are the M side of S^T = K Q^T, channels that of O^T = V^T P^T, so few heads waste nothing.
// Queries and weights are split into two e4m3 terms, value = high + low / 16: exact for bf16
// queries, as fine as bf16 for the weights. K is read in place; V^T is built in registers, a
// transposing load and one byte shuffle for four values. A token's scales multiply the scores and
// the weights, never the elements. Products of 64 tokens are added up in fp32.
//
// A block of one warpgroup owns kHeads heads of an item (row, split); kBlocks blocks fit on a
// multiprocessor. Every thread gathers: 64 tokens a stage.
// Where several blocks fit on a multiprocessor, they hide each other's gather with one stage each;
// else a block has two.
#include "kernels/sm90/sparse_mla_fp8.cuh"

#include "kernels/sm90/launch.cuh"

namespace winnow::kernels::sm90 {

// x[j][c]: base-2 logits of tokens g (c < 2) and g + 8 of the warp's 16, heads 8j + 2t + c % 2.
template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::scores(
    int stage, const float (&scale)[2][T::kWeightSets], float (&x)[kPairs][4]) {
  auto& from = shared.stages[stage];
  float rope[T::kRopeBf16 ? kHeads / 2 : 1];
  const float softmax = call.p.softmax_scale * kLog2e;
#pragma unroll
  for (int first = 0; first < T::kWeightSets; first += T::kGroupsAtOnce) {
    float part[T::kGroupsAtOnce][kHeads];
    wgmma_fence();
#pragma unroll
    for (int p = 0; p < T::kGroupsAtOnce; ++p) {
      constexpr int kTilesOfPart = 4 / T::kWeightSets;
#pragma unroll
      for (int i = 0; i < kTilesOfPart; ++i) {
        const int tile = (first + p) * kTilesOfPart + i;
        const uint64_t a = wgmma_descriptor(smem_address(from.latent[tile]));
        const uint64_t b = wgmma_descriptor(smem_address(mine.q[tile]));
#pragma unroll
        for (int k = 0; k < 4; ++k) wgmma_e4m3_ss(part[p], a + k * 2, b + k * 2, i + k > 0);
      }
    }
    if (first == 0) {
      if constexpr (T::kRopeBf16) {
        const uint64_t a = wgmma_descriptor(smem_address(from.rope));
        const uint64_t b = wgmma_descriptor(smem_address(mine.q_rope));
#pragma unroll
        for (int k = 0; k < 4; ++k) wgmma_bf16_ss(rope, a + k * 2, b + k * 2, k > 0);
      } else {
        const uint64_t a = wgmma_descriptor_64b(smem_address(from.rope));
        const uint64_t b = wgmma_descriptor_64b(smem_address(mine.q_rope));
#pragma unroll
        for (int k = 0; k < 2; ++k) wgmma_e4m3_ss(part[0], a + k * 2, b + k * 2, 1);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int p = 0; p < T::kGroupsAtOnce; ++p) wgmma_pin(part[p]);
    if constexpr (T::kRopeBf16) wgmma_pin(rope);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float value = first > 0 ? x[j][c] : 0.0f;
#pragma unroll
        for (int p = 0; p < T::kGroupsAtOnce; ++p) {
          const float sum =
              fmaf(part[p][kHeads / 2 + j * 4 + c], 1.0f / kLowScale, part[p][j * 4 + c]);
          value = T::kScaled ? fmaf(sum, scale[c / 2][first + p], value) : value + sum;
        }
        x[j][c] = value;
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const float2 unscale = *reinterpret_cast<const float2*>(&mine.unscale[j * 8 + t * 2]);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      float value = x[j][c] * (c % 2 == 0 ? unscale.x : unscale.y);
      if constexpr (T::kRopeBf16) {
        value += rope[j * 4 + c];
      } else {
        value *= call.p.cache_scale;
      }
      x[j][c] = value * softmax;
    }
  }
}

// The rare case that a logit passes the running maximum by far: all warps agree on the new one.
template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::raise_top(
    const float (&x)[kPairs][4],
    const float (&bound)[2],
    float (&top)[kPairs][2],
    float (&sum)[kPairs][2],
    float (&o)[8][kPairs][4]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float high = fmaxf(x[j][c] + bound[0], x[j][c + 2] + bound[1]);
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 4));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 8));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 16));
      if (g == 0) mine.reduce[warp][j * 8 + t * 2 + c] = high;
    }
  }
  sync_warpgroup();
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int head = j * 8 + t * 2 + c;
      const float high = fmaxf(fmaxf(mine.reduce[0][head], mine.reduce[1][head]),
                               fmaxf(mine.reduce[2][head], mine.reduce[3][head]));
      if (high > top[j][c] + kSlack) {
        const float factor = exp2_fast(top[j][c] - high);
        top[j][c] = high;
        sum[j][c] *= factor;
#pragma unroll
        for (int m = 0; m < 8; ++m) {
          o[m][j][c] *= factor;
          o[m][j][c + 2] *= factor;
        }
      }
    }
  }
}

// Weights as two e4m3 terms, the rows of the B operand. Column 16 * warp + 2g holds token g of the
// warp, the next one token g + 8.
template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::store_weights(
    const float (&x)[kPairs][4],
    const float (&top)[kPairs][2],
    const float (&scale)[2][T::kWeightSets],
    float (&sum)[kPairs][2]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float base = top[j][c] == -INFINITY ? 0.0f : top[j][c];
      const float w0 = exp2_fast(x[j][c] - base), w1 = exp2_fast(x[j][c + 2] - base);
      sum[j][c] += w0 + w1;
      const int head = j * 8 + t * 2 + c;
      const uint32_t at = head * 64 + ((warp ^ (head >> 1 & 3)) << 4) + g * 2;
#pragma unroll
      for (int p = 0; p < T::kWeightSets; ++p) {
        float a = w0 * kWeightScale, b = w1 * kWeightScale;
        if constexpr (T::kScaled) {
          a *= scale[0][p];
          b *= scale[1][p];
        }
        const uint16_t first = split_first(a, b);
        const uint16_t second = f32x2_to_e4m3x2(a, b);
        *reinterpret_cast<uint16_t*>(mine.weights[p] + at) = first;
        *reinterpret_cast<uint16_t*>(mine.weights[p] + kHeads * 64 + at) = second;
      }
    }
  }
}

// more: another block follows, whose gather starts as soon as the stage is free.
// o[m][j][c]: channel 64m + 16 * warp + 2g + c / 2, head 8j + 2t + c % 2, times kWeightScale.
template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::add_outputs(
    int stage, bool more, float (&o)[8][kPairs][4]) {
  const int row = lane % 8;
  const uint32_t from = smem_address(shared.stages[stage].latent) + lane * 128;
  float part[2][kHeads];  // of two tiles of 64 channels
  uint32_t a[2][2][4];
#pragma unroll
  for (int m = 0; m <= 8; ++m) {
    const int buffer = m % 2;
    if (m < 8) {
      const uint32_t column = ((m % 2 * 4 + warp) ^ row) << 4;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        uint32_t v[4];
        ldmatrix_x4_trans(v, from + m / 2 * kTileBytes + k * 4096 + column);
        a[buffer][k][0] = __byte_perm(v[0], v[1], 0x6240);
        a[buffer][k][1] = __byte_perm(v[0], v[1], 0x7351);
        a[buffer][k][2] = __byte_perm(v[2], v[3], 0x6240);
        a[buffer][k][3] = __byte_perm(v[2], v[3], 0x7351);
      }
      const uint64_t b =
          wgmma_descriptor_64b(smem_address(mine.weights[T::kGroupScales ? m / 2 : 0]));
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 2; ++k) wgmma_e4m3_rs(part[buffer], a[buffer][k], b + k * 2, k);
      wgmma_commit();
    } else if (T::kStages == 1) {
      __syncthreads();  // no warp reads the stage any more
      if (more) gather(0);
    }
    if (m == 0) continue;
    if (m < 8) {
      wgmma_wait<1>();
    } else {
      wgmma_wait<0>();
    }
    float(&done)[kHeads] = part[buffer ^ 1];
    wgmma_pin(done);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        o[m > 0 ? m - 1 : 0][j][c] +=
            fmaf(done[kHeads / 2 + j * 4 + c], 1.0f / kLowScale, done[j * 4 + c]);
      }
    }
  }
}

template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::store(
    const float (&top)[kPairs][2], float (&sum)[kPairs][2], const float (&o)[8][kPairs][4]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float l = sum[j][c];
      l += __shfl_xor_sync(0xffffffffu, l, 4);
      l += __shfl_xor_sync(0xffffffffu, l, 8);
      l += __shfl_xor_sync(0xffffffffu, l, 16);
      if (g == 0) mine.reduce[warp][j * 8 + t * 2 + c] = l;
    }
  }
  sync_warpgroup();
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int h = j * 8 + t * 2 + c, head = head_begin + h;
      if (head >= call.p.num_heads) continue;
      const float l = mine.reduce[0][h] + mine.reduce[1][h] + mine.reduce[2][h] + mine.reduce[3][h];
      const float inverse = l > 0 ? call.p.cache_scale / (l * kWeightScale) : 0.0f;
      const int64_t piece = item.row * call.num_splits + item.split;
      const int column = warp * 16 + g * 2;
      if (warp == 0 && g == 0) {
        const float lse = l > 0 ? top[j][c] + log2_fast(l) : -INFINITY;
        if (call.num_splits > 1) {
          call.partial_lse[piece * call.p.num_heads + head] = lse;
        } else if (call.p.lse != nullptr) {
          call.p.lse[item.row * call.p.num_heads + head] = lse * kLn2;
        }
      }
      if (call.num_splits > 1) {
        float* to = call.partial_out + (piece * call.p.num_heads + head) * kLatentDim + column;
#pragma unroll
        for (int m = 0; m < 8; ++m) {
          *reinterpret_cast<float2*>(to + m * 64) =
              make_float2(o[m][j][c] * inverse, o[m][j][c + 2] * inverse);
        }
      } else {
        auto* to = static_cast<__nv_bfloat16*>(call.p.out) +
                   (item.row * call.p.num_heads + head) * kLatentDim + column;
#pragma unroll
        for (int m = 0; m < 8; ++m) {
          *reinterpret_cast<uint32_t*>(to + m * 64) =
              pack_bf16(o[m][j][c] * inverse, o[m][j][c + 2] * inverse);
        }
      }
    }
  }
}

template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::run() {
  float top[kPairs][2], sum[kPairs][2], o[8][kPairs][4];
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    top[j][0] = top[j][1] = -INFINITY;
    sum[j][0] = sum[j][1] = 0;
#pragma unroll
    for (int m = 0; m < 8; ++m) o[m][j][0] = o[m][j][1] = o[m][j][2] = o[m][j][3] = 0;
  }
#pragma unroll
  for (int stage = 0; stage < T::kStages; ++stage) {
    if (stage < blocks) gather(stage);
  }
  load_queries();
  for (int block = 0; block < blocks; ++block) {
    const int stage = block % T::kStages;
    const bool more = block + 1 < blocks;
    if (T::kStages == 2 && block == 0 && more) {
      cp_async_wait<1>();
    } else {
      cp_async_wait<0>();
    }
    fence_proxy_async();
    __syncthreads();  // the block is here, and the one before is used up
    const uint32_t valid = stage == 0 ? valid_of[0] : valid_of[T::kStages - 1];
    const float token_scale = stage == 0 ? scale_of[0] : scale_of[T::kStages - 1];
    if (T::kStages == 2 && block > 0 && more) gather(stage ^ 1);
    const bool in[2] = {(valid >> g & 1) != 0, (valid >> (g + 8) & 1) != 0};
    float scale[2][T::kWeightSets], bound[2] = {0, 0};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if constexpr (T::kTokenScale) {
        scale[r][0] = __shfl_sync(0xffffffffu, token_scale, g + r * 8);
        bound[r] = log2_fast(fmaxf(scale[r][0], kSmallestScale));
      } else if constexpr (T::kGroupScales) {
        const float4 s = *reinterpret_cast<const float4*>(shared.stages[stage].scales +
                                                          (warp * 16 + g + r * 8) * 16);
        scale[r][0] = s.x, scale[r][1] = s.y, scale[r][2] = s.z, scale[r][3] = s.w;
        bound[r] = log2_fast(fmaxf(fmaxf(fmaxf(s.x, s.y), fmaxf(s.z, s.w)), kSmallestScale));
      }
    }
    float x[kPairs][4];
    scores(stage, scale, x);
    bool moved = false;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (!in[c / 2]) x[j][c] = -INFINITY;
        moved = moved || x[j][c] + bound[c / 2] > top[j][c % 2] + kSlack;
      }
    }
    if (__any_sync(0xffffffffu, named_barrier_or(1, kThreads, moved))) {
      raise_top(x, bound, top, sum, o);
    }
    store_weights(x, top, scale, sum);
    fence_proxy_async();
    sync_warpgroup();
    add_outputs(stage, more, o);
  }
  store(top, sum, o);
}

namespace {

template <LatentLayout kLayout, int kHeads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks)
    sparse_mla_fp8_kernel(const __grid_constant__ SparseMlaCall call) {
  extern __shared__ __align__(1024) uint8_t raw[];
  auto& shared = *reinterpret_cast<Shared<kLayout, kHeads, kBlocks>*>(raw);
  if (smem_address(raw) % 1024 != 0) __trap();  // the swizzled tiles need it
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  Worker<kLayout, kHeads, kBlocks> worker{.call = call,
                                          .shared = shared,
                                          .mine = shared.heads,
                                          .warp = thread / 32 % 4,
                                          .lane = lane,
                                          .g = lane / 4,
                                          .t = lane % 4,
                                          .item = {},
                                          .head_begin = 0,
                                          .blocks = 0,
                                          .gathered = 0,
                                          .next_slot = -1,
                                          .valid_of = {},
                                          .scale_of = {}};
  const int64_t items = sparse_mla_items(call);
  for (int64_t i = blockIdx.x; i < items; i += gridDim.x) {
    worker.item = sparse_mla_place(call, i, kHeads);
    worker.open();
    worker.head_begin = worker.item.head_begin;
    worker.run();
  }
}

template <LatentLayout kLayout, int kHeads, int kBlocks>
cudaError_t launch(const SparseMlaCall& call, const SparseMlaPlan& plan, cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared<kLayout, kHeads, kBlocks>);
  static_assert(kBytes <= 233472 / kBlocks - 1024);
  const auto kernel = sparse_mla_fp8_kernel<kLayout, kHeads, kBlocks>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  return launch_overlapped(kernel, {.blocks = plan.grid, .threads = kThreads, .bytes = kBytes},
                           stream, call);
}

template <LatentLayout kLayout>
cudaError_t launch_layout(const SparseMlaCall& call,
                          const SparseMlaPlan& plan,
                          cudaStream_t stream) {
  switch (plan.head_tile) {
    case 8:
      return plan.blocks == 4 ? launch<kLayout, 8, 4>(call, plan, stream)
                              : launch<kLayout, 8, 2>(call, plan, stream);
    case 16:
      return launch<kLayout, 16, 3>(call, plan, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_sparse_mla_fp8(const SparseMlaCall& call,
                                  const SparseMlaPlan& plan,
                                  cudaStream_t stream) {
  switch (plan.layout) {
    case LatentLayout::kFp8_576:
      return launch_layout<LatentLayout::kFp8_576>(call, plan, stream);
    case LatentLayout::kFp8_644:
      return launch_layout<LatentLayout::kFp8_644>(call, plan, stream);
    case LatentLayout::kFp8_656:
      return launch_layout<LatentLayout::kFp8_656>(call, plan, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
