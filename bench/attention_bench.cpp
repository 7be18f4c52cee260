// Sparse attention, index logits and top-k of one layer at the widths of GLM-5, by context length:
// decode (one row) and prefill (64 rows). Attention reads index_topk tokens whatever the context;
// only the index logits and the top-k may grow.
//   winnow_attention_bench [--threads N] [--isa NAME] [Google Benchmark's flags]
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu_flags.h"
#include "layout/float_formats.h"

namespace winnow::bench {
namespace {

CpuFlags flags;
constexpr int32_t kTopk = 2048, kHeads = 64, kC = 512, kR = 64, kIndexHeads = 32, kIndexDim = 128;

struct Layer {
  std::unique_ptr<ops::Backend> backend = flags.make_backend();
  std::vector<int32_t> pages, positions, seq_of_row, slots, lens;
  Buffer latents, keys;
  std::vector<float> q_latent, q_rope, out, head_weights, logits;
  std::vector<uint8_t> q;
  ops::BatchRows rows;
  ops::LatentCache latent_cache;
  ops::IndexKeyCache key_cache;

  Layer(int32_t context, int32_t num_rows);
};

Layer::Layer(int32_t context, int32_t num_rows) {
  ops::ModelShape shape;
  shape.hidden_size = 64;
  shape.vocab_size = 1;
  shape.num_attention_heads = kHeads;
  shape.kv_lora_rank = kC;
  shape.qk_rope_head_dim = kR;
  shape.index_n_heads = kIndexHeads;
  shape.index_head_dim = kIndexDim;
  shape.index_topk = kTopk;
  shape.max_rows = num_rows;
  shape.max_context = context;
  backend->prepare(shape);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto fill = [&](std::vector<float>& v, int64_t count) {
    v.resize(static_cast<size_t>(count));
    for (float& x : v) x = normal(random);
  };
  const int32_t num_pages = (context + 63) / 64;
  for (int32_t p = 0; p < num_pages; ++p) pages.push_back(num_pages - 1 - p);
  for (int32_t t = 0; t < num_rows; ++t) {
    positions.push_back(context - num_rows + t);
    seq_of_row.push_back(0);
  }
  rows.num_rows = num_rows;
  rows.num_seqs = 1;
  rows.positions = positions.data();
  rows.seq_of_row = seq_of_row.data();
  rows.page_tables = pages.data();
  rows.page_table_stride = num_pages;
  latent_cache.geometry = {layout::LatentLayout::kFp8_656, kC, kR, 64};
  latent_cache.page_stride_bytes = latent_cache.geometry.page_bytes();
  latent_cache.num_pages = num_pages;
  key_cache.geometry = {layout::IndexKeyLayout::kFp8_132, kIndexDim, 64};
  key_cache.page_stride_bytes = key_cache.geometry.page_bytes();
  key_cache.num_pages = num_pages;
  latents = backend->allocate(num_pages * latent_cache.page_stride_bytes);
  keys = backend->allocate(num_pages * key_cache.page_stride_bytes);
  latent_cache.data = latents.data();
  key_cache.data = keys.data();
  for (auto [buffer, tail] : {std::pair{&latents, 4}, {&keys, 4}}) {
    for (int64_t i = 0; i < buffer->bytes(); i += tail) {
      const float scale = 0.01f;  // also a fair run of e4m3 and bf16 values
      std::memcpy(buffer->as<uint8_t>() + i, &scale, 4);
    }
  }
  for (int32_t p = 0; p < num_pages; ++p) {  // keys as scaled rows have them: few near zero
    auto* page = keys.as<uint8_t>() + p * key_cache.page_stride_bytes;
    for (int32_t i = 0; i < 64 * kIndexDim; ++i)
      page[i] = layout::f32_to_e4m3(normal(random) * 130);
  }
  fill(q_latent, int64_t{num_rows} * kHeads * kC);
  fill(q_rope, int64_t{num_rows} * kHeads * kR);
  fill(head_weights, int64_t{num_rows} * kIndexHeads);
  out.resize(q_latent.size());
  for (int64_t i = 0; i < int64_t{num_rows} * kIndexHeads * kIndexDim; ++i) {
    q.push_back(layout::f32_to_e4m3(normal(random) * 50));
  }
  logits.resize(static_cast<size_t>(num_rows) * static_cast<size_t>(context));
  slots.resize(static_cast<size_t>(num_rows) * kTopk);
  lens.resize(static_cast<size_t>(num_rows));
}

void index_logits(benchmark::State& state) {
  Layer l(static_cast<int32_t>(state.range(0)), static_cast<int32_t>(state.range(1)));
  for (auto _ : state) {
    l.backend->index_logits({&l.rows, l.q.data(), ops::IndexFormat::kFp8, l.head_weights.data(),
                             kIndexHeads, l.key_cache, 0, state.range(0), l.logits.data(),
                             state.range(0)});
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 2e-9 *
          static_cast<double>(state.range(0) * state.range(1)) * kIndexHeads * kIndexDim,
      benchmark::Counter::kIsRate);
}

void select_tokens(benchmark::State& state) {
  Layer l(static_cast<int32_t>(state.range(0)), static_cast<int32_t>(state.range(1)));
  for (auto _ : state) {
    l.backend->select_tokens({&l.rows, l.q.data(), ops::IndexFormat::kFp8, l.head_weights.data(),
                              kIndexHeads, l.key_cache, kTopk, l.slots.data(), l.lens.data()});
  }
}

void sparse_mla(benchmark::State& state) {
  Layer l(static_cast<int32_t>(state.range(0)), static_cast<int32_t>(state.range(1)));
  l.backend->select_tokens({&l.rows, l.q.data(), ops::IndexFormat::kFp8, l.head_weights.data(),
                            kIndexHeads, l.key_cache, kTopk, l.slots.data(), l.lens.data()});
  for (auto _ : state) {
    l.backend->sparse_mla({&l.rows, l.q_latent.data(), l.q_rope.data(), l.slots.data(),
                           l.lens.data(), kTopk, kHeads, 0.0625f, l.latent_cache, l.out.data(),
                           nullptr});
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 2e-9 *
          static_cast<double>(state.range(1) * std::min<int64_t>(kTopk, state.range(0))) * kHeads *
          (2 * kC + kR),
      benchmark::Counter::kIsRate);
}

void register_all() {
  const std::pair<const char*, void (*)(benchmark::State&)> benches[] = {
      {"index_logits", index_logits}, {"select_tokens", select_tokens}, {"sparse_mla", sparse_mla}};
  for (const auto& [name, body] : benches) {
    auto* entry = benchmark::RegisterBenchmark(name, body);
    entry->ArgNames({"context", "rows"})->Unit(benchmark::kMicrosecond);
    for (const int64_t context : {2048, 8192, 32768}) {
      for (const int64_t rows : {1, 64}) entry->Args({context, rows});
    }
    if (flags.threads > 1) entry->UseRealTime();
  }
}

}  // namespace
}  // namespace winnow::bench

int main(int argc, char** argv) {
  winnow::bench::flags = winnow::bench::take_cpu_flags(argc, argv);
  winnow::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
