// Sparse MLA over bf16 caches, 64 lines a tile: the heads of one row, or those of several rows that
// share a gather. One block owns an item (row, split, head tile; or group) at a time and walks over
// items; four warpgroups with one job each:
//   producers  bring 64 tokens a stage into swizzled tiles (2 stages);
//   scores     S = Q K^T (64 x 64, 576 deep), softmax, P to shared memory;
//   outputs    two warpgroups, O[64 x 256] each, O += P V with V read from the same stage.
// A stage comes and goes in two parts, so that the next gather starts while P V runs and S while it
// lands.
// Rows that share a gather go through the union of their tokens, each with a bit mask of its own.
#include "kernels/device/wgmma.cuh"
#include "kernels/sm90/sparse_mla_wide_gather.cuh"

namespace winnow::kernels::sm90 {
namespace wide {
namespace {

// One part of S; its tokens are there.
__device__ __forceinline__ void multiply_part(uint64_t q, uint64_t k, int part, float (&s)[32]) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < tiles_of(part); ++i) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int at = (tile_of(part, i) * kTileBytes + step * 32) >> 4;
      wgmma_bf16_ss(s, q + at, k + at, part + i + step > 0);
    }
  }
  wgmma_commit();
}

template <bool kGrouped>
__device__ __forceinline__ void score(const SparseMlaCall& call, Shared& shared) {
  const int thread = threadIdx.x % 128, lane = thread % 32, g = lane / 4, t = lane % 4;
  const int row = thread / 32 * 16 + g;  // and row + 8
  // Rows of the group that this thread's two lines belong to.
  const int heads = kGrouped ? kLines / call.groups.rows : 1;
  const int mask_at[2] = {thread / 32 * 16 / heads, (thread / 32 * 16 + 8) / heads};
  const uint32_t p_to = smem_address(shared.kv) + kRopeTile * kTileBytes + row * 128 + t * 4;
  uint32_t step = 0, items = 0;
  const int64_t num_items = sparse_mla_items(call);
  for (int64_t i = blockIdx.x; i < num_items; i += gridDim.x, ++items) {
    const TileItem item = tile_item<kGrouped, kLines>(call, i);
    const int blocks = item.blocks();
    load_queries<kGrouped>(call, item, shared);
    const float scale = call.p.softmax_scale * kLog2e;
    uint2 masks[2] = {};
    if constexpr (kGrouped) {
      if (blocks > 0) {
        masks[0] = __ldg(item.masks + mask_at[0]);
        masks[1] = __ldg(item.masks + mask_at[1]);
      }
    }
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages;
      const uint32_t parity = (step / kStages) & 1;
      float s[32];
      const uint64_t k_tile = wgmma_descriptor(smem_address(shared.kv[stage]));
      const uint64_t q_tile = wgmma_descriptor(smem_address(shared.q));
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        shared.full[stage][part].wait(parity);
        fence_proxy_async();
        multiply_part(q_tile, k_tile, part, s);
      }
      uint2 chosen[2] = {masks[0], masks[1]};
      if constexpr (kGrouped) {
        if (block + 1 < blocks) {
          masks[0] = __ldg(item.masks + (block + 1) * call.groups.rows + mask_at[0]);
          masks[1] = __ldg(item.masks + (block + 1) * call.groups.rows + mask_at[1]);
        }
      }
      const uint4 valid = *reinterpret_cast<const uint4*>(shared.valid[stage]);
      shared.empty[stage][1].wait(parity ^ 1);  // long since: the factors of then have been read
      wgmma_wait<0>();
      wgmma_pin(s);
      if constexpr (kGrouped) {
        if ((chosen[0].x & chosen[0].y & chosen[1].x & chosen[1].y) != 0xffffffffu) {
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const uint32_t words[2] = {chosen[r].x >> (t * 2), chosen[r].y >> (t * 2)};
#pragma unroll
            for (int n = 0; n < 8; ++n) {
              const uint32_t bits = words[n / 4] >> (n % 4 * 8);
              if ((bits & 1) == 0) s[n * 4 + r * 2] = -INFINITY;
              if ((bits & 2) == 0) s[n * 4 + r * 2 + 1] = -INFINITY;
            }
          }
        }
      } else if ((valid.x & valid.y & valid.z & valid.w) != 0x0f0f0f0fu) {
        const uint32_t words[4] = {valid.x, valid.y, valid.z, valid.w};
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          // Tokens 8n + 2t and the next: byte 2n + t / 2, bits 2 (t % 2) and the next.
          const uint32_t bits = words[n / 2] >> (n % 2 * 16 + t / 2 * 8 + t % 2 * 2);
          if ((bits & 1) == 0) s[n * 4] = s[n * 4 + 2] = -INFINITY;
          if ((bits & 2) == 0) s[n * 4 + 1] = s[n * 4 + 3] = -INFINITY;
        }
      }
      float factor[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float high = s[r * 2];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          high = fmaxf(high, fmaxf(s[n * 4 + r * 2], s[n * 4 + r * 2 + 1]));
        }
        high *= scale;
        factor[r] = 1.0f;
        if (__any_sync(0xffffffffu, high > top[r] + kMaxSlack)) {
          high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
          high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
          if (high > top[r] + kMaxSlack) {
            if (block > 0) factor[r] = exp2_fast(top[r] - high);
            top[r] = high;
          }
        }
        const float base = top[r] == -INFINITY ? 0.0f : top[r];
        float added = 0;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& x = s[n * 4 + r * 2 + c];
            x = exp2_fast(fmaf(x, scale, -base));
            added += x;
          }
        }
        sum[r] = sum[r] * factor[r] + added;
      }
      // The weights take the place of the rope tile, which all warps have used.
      shared.empty[stage][1].arrive();
      named_barrier_sync(1, 128);
      const uint32_t to = p_to + stage * kStageBytes;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const uint32_t at = to + ((n ^ g) << 4);
        store_shared_4(at, pack_bf16(s[n * 4], s[n * 4 + 1]));
        store_shared_4(at + 8 * 128, pack_bf16(s[n * 4 + 2], s[n * 4 + 3]));
      }
      if (t == 0) {
        shared.rescale[stage][row] = factor[0];
        shared.rescale[stage][row + 8] = factor[1];
      }
      fence_proxy_async();
      shared.weights[stage].arrive();
    }
    shared.sum_empty.wait((items & 1) ^ 1);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
      if (t == 0) {
        shared.inverse_sum[row + r * 8] = sum[r] > 0 ? 1.0f / sum[r] : 0.0f;
        const float lse = sum[r] > 0 ? top[r] + log2_fast(sum[r]) : -INFINITY;
        int64_t index;
        if (tile_line<kGrouped, kLines>(call, item, row + r * 8, index)) {
          if (!kGrouped && call.num_splits > 1) {
            call.partial_lse[partial_index(call, item, row + r * 8)] = lse;
          } else if (call.p.lse != nullptr) {
            call.p.lse[index] = lse * kLn2;
          }
        }
      }
    }
    shared.sum_full.arrive();
  }
}

// o[n / 16][n % 16 * 4 + 2r + c] is tile line row + 8r, column 8n + 2t + c of this warpgroup's 256.
template <bool kGrouped>
__device__ __forceinline__ void store_outputs(const SparseMlaCall& call,
                                              const TileItem& item,
                                              float (&o)[2][64],
                                              const float (&inverse)[2],
                                              int row,
                                              int column_begin) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    int64_t index;
    const bool in = tile_line<kGrouped, kLines>(call, item, row + r * 8, index);
    if (!kGrouped && call.num_splits > 1) {
      float* to = call.partial_out + partial_index(call, item, row + r * 8) * kLatentDim +
                  column_begin + t * 2;
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
    auto* to = static_cast<__nv_bfloat16*>(call.p.out) + index * kLatentDim + column_begin + t * 8;
#pragma unroll
    for (int n = 0; n < 32; n += 4) {
      // A 4 x 4 transpose among the four threads of a row: thread t ends with the 8 columns of n +
      // t.
      uint32_t v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        v[k] = pack_bf16(o[n / 16][(n + k) % 16 * 4 + r * 2] * inverse[r],
                         o[n / 16][(n + k) % 16 * 4 + r * 2 + 1] * inverse[r]);
      }
      const bool odd = (t & 1) != 0, high = (t & 2) != 0;
      const uint32_t x0 = __shfl_xor_sync(0xffffffffu, odd ? v[0] : v[1], 1);
      const uint32_t x1 = __shfl_xor_sync(0xffffffffu, odd ? v[2] : v[3], 1);
      // Now pairs: (w0, w1) column groups of even / odd n for threads (t & ~1), (t | 1).
      const uint32_t w0 = odd ? x0 : v[0], w1 = odd ? v[1] : x0;
      const uint32_t w2 = odd ? x1 : v[2], w3 = odd ? v[3] : x1;
      const uint32_t y0 = __shfl_xor_sync(0xffffffffu, high ? w0 : w2, 2);
      const uint32_t y1 = __shfl_xor_sync(0xffffffffu, high ? w1 : w3, 2);
      const uint4 line = high ? make_uint4(y0, y1, w2, w3) : make_uint4(w0, w1, y0, y1);
      if (in) *reinterpret_cast<uint4*>(to + n * 8) = line;
    }
  }
}

template <bool kGrouped>
__device__ __forceinline__ void accumulate(const SparseMlaCall& call, Shared& shared, int half) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const int row = thread / 32 * 16 + lane / 4;
  uint32_t step = 0, items = 0;
  float o[2][64];  // columns in two halves of 128: the widest product that 128 registers at entry
                   // allow
  const int64_t num_items = sparse_mla_items(call);
  for (int64_t i = blockIdx.x; i < num_items; i += gridDim.x, ++items) {
    const TileItem item = tile_item<kGrouped, kLines>(call, i);
    const int blocks = item.blocks();
    if (blocks == 0) {
#pragma unroll
      for (int k = 0; k < 64; ++k) o[0][k] = o[1][k] = 0;
    }
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages;
      shared.weights[stage].wait((step / kStages) & 1);
      const float f0 = shared.rescale[stage][row], f1 = shared.rescale[stage][row + 8];
      if (__any_sync(0xffffffffu, f0 != 1.0f || f1 != 1.0f)) {
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
      const uint32_t tiles = smem_address(shared.kv[stage]);
      const uint64_t p = wgmma_descriptor(tiles + kRopeTile * kTileBytes);
      const uint64_t v = wgmma_descriptor(tiles + half * 4 * kTileBytes, kTileBytes);
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      wgmma_fence();
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int q = 0; q < kQuarters; ++q) {
          wgmma_bf16_ss_nt(o[part], p + ((q * 32) >> 4),
                           v + ((part * 2 * kTileBytes + q * 2048) >> 4), block + q > 0);
        }
        wgmma_commit();
      }
      wgmma_wait<1>();
      shared.empty[stage][0].arrive();
      wgmma_wait<0>();
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      shared.empty[stage][1].arrive();
    }
    shared.sum_full.wait(items & 1);
    const float inverse[2] = {shared.inverse_sum[row], shared.inverse_sum[row + 8]};
    shared.sum_empty.arrive();
    store_outputs<kGrouped>(call, item, o, inverse, row, half * 256);
  }
}

template <bool kGrouped>
__global__ void __launch_bounds__(kThreads, 1)
    sparse_mla_wide_kernel(const __grid_constant__ SparseMlaCall call) {
  extern __shared__ uint8_t raw[];
  auto& shared = swizzle_aligned<Shared>(raw);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      // Whoever reads what the other side writes again says so, thread by thread.
      shared.full[s][0].init(128);
      shared.full[s][1].init(128 + 4);
      shared.empty[s][0].init(256);
      shared.empty[s][1].init(128 + 256);
      shared.weights[s].init(128);
    }
    shared.sum_full.init(128);
    shared.sum_empty.init(256);
    fence_mbarrier_init();
  }
  __syncthreads();
  const int role = warp_uniform(threadIdx.x / 128);
  if (role == 0) {
    shrink_registers<kProducerRegisters>();
    copy_tokens<kGrouped>(call, shared);
  } else if (role == 1) {
    grow_registers<kScoreRegisters>();
    score<kGrouped>(call, shared);
  } else {
    grow_registers<kOutputRegisters>();
    accumulate<kGrouped>(call, shared, role - 2);
  }
}

template <bool kGrouped>
cudaError_t launch(const SparseMlaCall& call, int grid, cudaStream_t stream) {
  constexpr int kBytes = static_cast<int>(sizeof(Shared)) + kSwizzleBytes;
  static_assert(kBytes <= 232448, "the shared memory of a block");
  const auto kernel = sparse_mla_wide_kernel<kGrouped>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  kernel<<<grid, kThreads, kBytes, stream>>>(call);
  return cudaGetLastError();
}

}  // namespace
}  // namespace wide

cudaError_t launch_sparse_mla_wide(const SparseMlaCall& call,
                                   bool grouped,
                                   int grid,
                                   cudaStream_t stream) {
  return grouped ? wide::launch<true>(call, grid, stream) : wide::launch<false>(call, grid, stream);
}

}  // namespace winnow::kernels::sm90
