// How cached tokens and queries come into the shared memory of the wide sparse MLA kernel: bf16
// rows by cp.async as they are. sparse_mla_wide.cu includes it.
#pragma once

#include "kernels/device/async_copy.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/sm90/sparse_mla_tile.cuh"

namespace winnow::kernels::sm90::wide {

constexpr int kLines = 64;            // of the tile: heads of a row, or of several rows
constexpr int kTokens = kTileTokens;  // of a stage
constexpr int kRowBytes = 1152;
constexpr int kStages = 2;
constexpr int kTiles = 9;  // of 64 channels: 8 latent, 1 rope
constexpr int kRopeTile = 8;
constexpr int kTileBytes = 64 * 128;
constexpr int kStageBytes = kTiles * kTileBytes;
constexpr int kQuarters = 4;  // of a stage's tokens, 16 each: one k step of P V
constexpr int kThreads = 512;
// Registers of a thread by role; they add up to the 512 that four warpgroups have.
constexpr int kProducerRegisters = 40;
constexpr int kScoreRegisters = 152;
constexpr int kOutputRegisters = 160;
static_assert(kProducerRegisters + kScoreRegisters + 2 * kOutputRegisters == 512);

// A stage comes and goes in two parts: the first 128 columns of both output warpgroups, then their
// other ones and the rope tile.
constexpr int kParts = 2;
__device__ constexpr int tiles_of(int part) { return 4 + part; }
__device__ constexpr int tile_of(int part, int i) {
  return i == 4 ? kRopeTile : i / 2 * 4 + part * 2 + i % 2;
}

struct Shared {
  // Once S is there, the rope tile of a stage has the weights: [line][64 tokens].
  uint8_t kv[kStages][kStageBytes];
  uint8_t q[kTiles][kTileBytes];
  float rescale[kStages][kLines];
  float inverse_sum[kLines];
  uint8_t valid[kStages][16];  // 4 bits a byte: token 4i + bit of the stage counts
  Mbarrier full[kStages][kParts];
  Mbarrier empty[kStages][kParts];
  Mbarrier weights[kStages];
  Mbarrier sum_full;
  Mbarrier sum_empty;
};

template <bool kGrouped>
__device__ __forceinline__ void copy_tokens(const SparseMlaCall& call, Shared& shared) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int sub = lane / 8, chunk = lane % 8;
  const int token_in_quarter = warp * 4 + sub;
  const auto* cache = static_cast<const uint8_t*>(call.p.cache) + chunk * 16;
  const uint32_t to =
      smem_address(shared.kv) + token_in_quarter * 128 + ((chunk ^ (token_in_quarter & 7)) << 4);
  uint32_t step = 0;
  const int64_t items = sparse_mla_items(call);
  for (int64_t i = blockIdx.x; i < items; i += gridDim.x) {
    const TileItem item = tile_item<kGrouped, kLines>(call, i);
    const int blocks = item.blocks();
    int32_t next[kQuarters];
    const auto load_slots = [&](int block) {
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        const int at = item.begin + block * kTokens + q * 16 + token_in_quarter;
        next[q] = at < item.end ? __ldg(item.slots + at) : -1;
      }
    };
    if (blocks > 0) load_slots(0);
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages, parity = (step / kStages) & 1;
      uint32_t unit[kQuarters], bytes[kQuarters];  // where a token lies, in 16 bytes
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        const bool valid = slot_is_valid(call, next[q]);
        unit[q] = valid ? static_cast<uint32_t>(slot_offset(call, next[q], kRowBytes) / 16) : 0;
        bytes[q] = valid ? 16 : 0;
      }
      if (block + 1 < blocks) load_slots(block + 1);
      const uint32_t dst = to + stage * kStageBytes;
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        shared.empty[stage][part].wait(parity ^ 1);
#pragma unroll
        for (int q = 0; q < kQuarters; ++q) {
          const uint8_t* from = cache + uint64_t{unit[q]} * 16;
#pragma unroll
          for (int k = 0; k < tiles_of(part); ++k) {
            const int tile = tile_of(part, k);
            cp_async_16(dst + tile * kTileBytes + q * 2048, from + tile * 128, bytes[q]);
          }
          if (part == 1) {
            const uint32_t votes = __ballot_sync(0xffffffffu, bytes[q] != 0);
            if (lane == 0) {
              shared.valid[stage][q * 4 + warp] = static_cast<uint8_t>(
                  (votes & 1) | (votes >> 7 & 2) | (votes >> 14 & 4) | (votes >> 21 & 8));
            }
          }
        }
        if (part == 1 && lane == 0) shared.full[stage][part].arrive();
        shared.full[stage][part].arrive_after_cp_async();
      }
    }
  }
}

// The item's queries to shared memory, by the score warpgroup; lines that stand for no head are
// zero.
template <bool kGrouped>
__device__ __forceinline__ void load_queries(const SparseMlaCall& call,
                                             const TileItem& item,
                                             Shared& shared) {
  named_barrier_sync(1, 128);  // all warps are done with the item before
  const int thread = threadIdx.x % 128;
  const auto* latent = static_cast<const uint8_t*>(call.p.q_latent);
  const auto* rope = static_cast<const uint8_t*>(call.p.q_rope);
  const uint32_t to = smem_address(shared.q);
  const int chunk = thread % 8;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const int line = part * 16 + thread / 8;
    int64_t index;
    const bool in = tile_line<kGrouped, kLines>(call, item, line, index);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const uint8_t* from = tile < 8 ? latent + index * 1024 + tile * 128 : rope + index * 128;
      cp_async_16(to + tile * kTileBytes + line * 128 + ((chunk ^ (line & 7)) << 4),
                  in ? from + chunk * 16 : latent, in ? 16 : 0);
    }
  }
  cp_async_commit();
  cp_async_wait<0>();
  fence_proxy_async();
  named_barrier_sync(1, 128);
}

}  // namespace winnow::kernels::sm90::wide
