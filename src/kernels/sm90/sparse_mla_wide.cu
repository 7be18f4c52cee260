// Sparse MLA for 64 heads a tile, bf16 cache. One block owns an item (row, split, head tile) at a
// time and walks over items; four warpgroups with one job each:
//   producers  gather 64 tokens a stage with 16-byte cp.async into swizzled tiles (2 stages);
//   scores     S = Q K^T (64 x 64, 576 deep), softmax, P to shared memory;
//   outputs    two warpgroups, O[64 x 256] each, O += P V with V read from the same stage.
// A stage is handed back in quarters of 16 tokens, so that the next gather starts while P V runs.
#include "kernels/device/async_copy.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/device/wgmma.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {
namespace {

constexpr int kHeads = 64;
constexpr int kTokens = 64;  // of a stage
constexpr int kStages = 2;
constexpr int kQuarters = 4;  // of a stage, 16 tokens each: one k step of P V
constexpr int kTiles = 9;     // of 64 channels: 8 latent, 1 rope
constexpr int kTileBytes = 64 * 128;
constexpr int kStageBytes = kTiles * kTileBytes;
constexpr int kRowBytes = 1152;
constexpr int kThreads = 512;
constexpr int kBoundary = 1024;  // alignment of the swizzle pattern

// Registers of a thread by role; they add up to the 512 that four warpgroups have.
constexpr int kProducerRegisters = 40;
constexpr int kScoreRegisters = 152;
constexpr int kOutputRegisters = 160;
static_assert(kProducerRegisters + kScoreRegisters + 2 * kOutputRegisters == 512);

struct Shared {
  uint8_t kv[kStages][kStageBytes];
  uint8_t q[kTiles][kTileBytes];
  uint8_t p[kTileBytes];
  float rescale[kHeads];
  float inverse_sum[kHeads];
  uint8_t valid[kStages][16];  // 4 bits a byte: token 4i + bit of the stage counts
  Mbarrier full[kStages];
  Mbarrier empty[kStages][kQuarters];
  Mbarrier p_full;
  Mbarrier p_empty;
  Mbarrier sum_full;
  Mbarrier sum_empty;
};

__device__ __forceinline__ void produce(const SparseMlaCall& call, Shared& shared) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int sub = lane / 8, chunk = lane % 8;
  const int token_in_quarter = warp * 4 + sub;
  const auto* cache = static_cast<const uint8_t*>(call.p.cache) + chunk * 16;
  const uint32_t to =
      smem_address(shared.kv) + token_in_quarter * 128 + ((chunk ^ (token_in_quarter & 7)) << 4);
  uint32_t step = 0;
  for (int64_t i = blockIdx.x; i < call.num_items; i += gridDim.x) {
    const SparseMlaItem item = sparse_mla_item(call, i, kHeads);
    const int32_t* slots = call.p.slots + item.row * call.p.slots_stride;
    const int blocks = (item.end - item.begin + kTokens - 1) / kTokens;
    int32_t next[kQuarters];
    const auto load_slots = [&](int block) {
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        const int at = item.begin + block * kTokens + q * 16 + token_in_quarter;
        next[q] = at < item.end ? __ldg(slots + at) : -1;
      }
    };
    if (blocks > 0) load_slots(0);
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages, parity = (step / kStages) & 1;
      int32_t now[kQuarters];
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) now[q] = next[q];
      if (block + 1 < blocks) load_slots(block + 1);
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        const bool valid = slot_is_valid(call, now[q]);
        const uint8_t* from = cache + (valid ? slot_offset(call, now[q], kRowBytes) : 0);
        const uint32_t votes = __ballot_sync(0xffffffffu, valid);
        shared.empty[stage][q].wait(parity ^ 1);
        const uint32_t dst = to + stage * kStageBytes + q * 2048;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          cp_async_16(dst + tile * kTileBytes, from + tile * 128, valid ? 16 : 0);
        }
        if (lane == 0) {
          shared.valid[stage][q * 4 + warp] = static_cast<uint8_t>(
              (votes & 1) | (votes >> 7 & 2) | (votes >> 14 & 4) | (votes >> 21 & 8));
        }
      }
      if (lane == 0) shared.full[stage].arrive();
      shared.full[stage].arrive_after_cp_async();
    }
  }
}

// The item's queries to shared memory; heads beyond num_heads are zero.
__device__ __forceinline__ void load_queries(const SparseMlaCall& call,
                                             const SparseMlaItem& item,
                                             Shared& shared) {
  const int thread = threadIdx.x % 128;
  const int heads_here = min(kHeads, call.p.num_heads - item.head_begin);
  const int64_t first = item.row * call.p.num_heads + item.head_begin;
  const auto* latent = static_cast<const uint8_t*>(call.p.q_latent) + first * (kLatentDim * 2);
  const auto* rope = static_cast<const uint8_t*>(call.p.q_rope) + first * (kRopeDim * 2);
  named_barrier_sync(1, 128);  // all warps are done with the item before
  const uint32_t to = smem_address(shared.q);
  const int chunk = thread % 8;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int head = part * 16 + thread / 8;
      const uint8_t* from = tile < 8 ? latent + head * 1024 + tile * 128 : rope + head * 128;
      const bool in = head < heads_here;
      cp_async_16(to + tile * kTileBytes + head * 128 + ((chunk ^ (head & 7)) << 4),
                  in ? from + chunk * 16 : latent, in ? 16 : 0);
    }
  }
  cp_async_commit();
  cp_async_wait<0>();
  fence_proxy_async();
  named_barrier_sync(1, 128);
}

__device__ __forceinline__ void score(const SparseMlaCall& call, Shared& shared) {
  const int thread = threadIdx.x % 128, lane = thread % 32, g = lane / 4, t = lane % 4;
  const int row = thread / 32 * 16 + g;  // and row + 8
  const float scale = call.p.softmax_scale * kLog2e;
  const uint32_t p_to = smem_address(shared.p) + row * 128 + t * 4;
  uint32_t step = 0, items = 0;
  for (int64_t i = blockIdx.x; i < call.num_items; i += gridDim.x, ++items) {
    const SparseMlaItem item = sparse_mla_item(call, i, kHeads);
    const int blocks = (item.end - item.begin + kTokens - 1) / kTokens;
    load_queries(call, item, shared);
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages;
      shared.full[stage].wait((step / kStages) & 1);
      fence_proxy_async();
      float s[32];
      const uint64_t k_tile = wgmma_descriptor(smem_address(shared.kv[stage]));
      const uint64_t q_tile = wgmma_descriptor(smem_address(shared.q));
      wgmma_fence();
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const uint64_t b = k_tile + ((tile * kTileBytes + k * 32) >> 4);
          wgmma_m64n64_ss(s, q_tile + ((tile * kTileBytes + k * 32) >> 4), b, tile + k > 0);
        }
      }
      wgmma_commit();
      const uint4 valid = *reinterpret_cast<const uint4*>(shared.valid[stage]);
      wgmma_wait<0>();
      wgmma_pin(s);
      if ((valid.x & valid.y & valid.z & valid.w) != 0x0f0f0f0fu) {
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
        high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
        high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
        high *= scale;
        factor[r] = 1.0f;
        if (high > top[r] + kMaxSlack) {
          if (block > 0) factor[r] = exp2_fast(top[r] - high);
          top[r] = high;
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
      shared.p_empty.wait((step & 1) ^ 1);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const uint32_t at = p_to + ((n ^ g) << 4);
        store_shared_4(at, pack_bf16(s[n * 4], s[n * 4 + 1]));
        store_shared_4(at + 8 * 128, pack_bf16(s[n * 4 + 2], s[n * 4 + 3]));
      }
      if (t == 0) {
        shared.rescale[row] = factor[0];
        shared.rescale[row + 8] = factor[1];
      }
      fence_proxy_async();
      shared.p_full.arrive();
    }
    shared.sum_empty.wait((items & 1) ^ 1);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
      const int head = item.head_begin + row + r * 8;
      if (t == 0) {
        shared.inverse_sum[row + r * 8] = sum[r] > 0 ? 1.0f / sum[r] : 0.0f;
        const float lse = sum[r] > 0 ? top[r] + log2_fast(sum[r]) : -INFINITY;
        if (head < call.p.num_heads) {
          if (call.num_splits > 1) {
            call.partial_lse[(item.row * call.num_splits + item.split) * call.p.num_heads + head] =
                lse;
          } else if (call.p.lse != nullptr) {
            call.p.lse[item.row * call.p.num_heads + head] = lse * kLn2;
          }
        }
      }
    }
    shared.sum_full.arrive();
  }
}

// o[n / 16][n % 16 * 4 + 2r + c] is head row + 8r, column 8n + 2t + c of this warpgroup's 256.
__device__ __forceinline__ void store_outputs(const SparseMlaCall& call,
                                              const SparseMlaItem& item,
                                              float (&o)[2][64],
                                              const float (&inverse)[2],
                                              int row,
                                              int column_begin) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = item.head_begin + row + r * 8;
    const bool in = head < call.p.num_heads;
    if (call.num_splits > 1) {
      float* to =
          call.partial_out +
          ((item.row * call.num_splits + item.split) * call.p.num_heads + head) * kLatentDim +
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
    auto* to = static_cast<__nv_bfloat16*>(call.p.out) +
               (item.row * call.p.num_heads + head) * kLatentDim + column_begin + t * 8;
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

__device__ __forceinline__ void accumulate(const SparseMlaCall& call, Shared& shared, int half) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const int row = thread / 32 * 16 + lane / 4;
  uint32_t step = 0, items = 0;
  float o[2][64];  // columns in two halves of 128: the widest product that 128 registers at entry
                   // allow
  for (int64_t i = blockIdx.x; i < call.num_items; i += gridDim.x, ++items) {
    const SparseMlaItem item = sparse_mla_item(call, i, kHeads);
    const int blocks = (item.end - item.begin + kTokens - 1) / kTokens;
    if (blocks == 0) {
#pragma unroll
      for (int k = 0; k < 64; ++k) o[0][k] = o[1][k] = 0;
    }
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages;
      shared.p_full.wait(step & 1);
      const float f0 = shared.rescale[row], f1 = shared.rescale[row + 8];
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
      const uint64_t p = wgmma_descriptor(smem_address(shared.p));
      const uint64_t v =
          wgmma_descriptor(smem_address(shared.kv[stage]) + half * 4 * kTileBytes, kTileBytes);
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      wgmma_fence();
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        const uint64_t a = p + ((q * 32) >> 4), b = v + ((q * 2048) >> 4);
        wgmma_m64n128_ss_nt(o[0], a, b, block + q > 0);
        wgmma_m64n128_ss_nt(o[1], a, b + ((2 * kTileBytes) >> 4), block + q > 0);
        wgmma_commit();
      }
      wgmma_wait<3>();
      if (lane == 0) shared.empty[stage][0].arrive();
      wgmma_wait<2>();
      if (lane == 0) shared.empty[stage][1].arrive();
      wgmma_wait<1>();
      if (lane == 0) shared.empty[stage][2].arrive();
      wgmma_wait<0>();
      wgmma_pin(o[0]);
      wgmma_pin(o[1]);
      if (lane == 0) {
        shared.empty[stage][3].arrive();
        shared.p_empty.arrive();
      }
    }
    shared.sum_full.wait(items & 1);
    const float inverse[2] = {shared.inverse_sum[row], shared.inverse_sum[row + 8]};
    __syncwarp();
    if (lane == 0) shared.sum_empty.arrive();
    store_outputs(call, item, o, inverse, row, half * 256);
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    sparse_mla_wide_kernel(const __grid_constant__ SparseMlaCall call) {
  extern __shared__ uint8_t raw[];
  auto& shared =
      *reinterpret_cast<Shared*>(raw + (kBoundary - smem_address(raw) % kBoundary) % kBoundary);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      shared.full[s].init(128 + 4);
      for (int q = 0; q < kQuarters; ++q) shared.empty[s][q].init(8);
    }
    shared.p_full.init(128);
    shared.p_empty.init(8);
    shared.sum_full.init(128);
    shared.sum_empty.init(8);
    fence_mbarrier_init();
  }
  __syncthreads();
  const int role = warp_uniform(threadIdx.x / 128);
  if (role == 0) {
    shrink_registers<kProducerRegisters>();
    produce(call, shared);
  } else if (role == 1) {
    grow_registers<kScoreRegisters>();
    score(call, shared);
  } else {
    grow_registers<kOutputRegisters>();
    accumulate(call, shared, role - 2);
  }
}

}  // namespace

cudaError_t launch_sparse_mla_wide(const SparseMlaCall& call,
                                   const SparseMlaPlan& plan,
                                   cudaStream_t stream) {
  constexpr int kBytes = static_cast<int>(sizeof(Shared)) + kBoundary;
  static_assert(kBytes <= 232448, "the shared memory of a block");
  const cudaError_t error = cudaFuncSetAttribute(
      sparse_mla_wide_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  sparse_mla_wide_kernel<<<plan.grid, kThreads, kBytes, stream>>>(call);
  return cudaGetLastError();
}

}  // namespace winnow::kernels::sm90
