// Linear products at the widths of GLM-5 (hidden 6144): GB/s of weights read at one row, against
// the machine's own read bandwidth; GFLOP/s at many rows, against oneDNN.
//   winnow_linear_bench [--threads N] [--isa NAME] [Google Benchmark's flags]
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "cpu_flags.h"
#include "layout/float_formats.h"
#include "layout/kv_layout.h"
#include "rival.h"

namespace winnow::bench {
namespace {

CpuFlags flags;

struct Shape {
  const char* name;
  int64_t out, in;
};
constexpr Shape kShapes[] = {{"q_a", 2048, 6144}, {"gate", 12288, 6144}, {"down", 6144, 12288}};

// More weights than any cache holds, so that one row reads them from memory every time.
constexpr int64_t kColdBytes = int64_t{512} << 20;

struct Weights {
  std::vector<uint8_t> bytes;
  std::vector<float> scales;
  int64_t count = 0;  // matrices, one behind the other
  int64_t matrix_bytes = 0;
};

Weights make_weights(DType dtype, const Shape& shape, bool cold) {
  Weights w;
  w.matrix_bytes = shape.out * shape.in * bytes_of(dtype);
  w.count = cold ? layout::ceil_div(kColdBytes, w.matrix_bytes) : 1;
  w.bytes.resize(static_cast<size_t>(w.count * w.matrix_bytes));
  w.scales.assign(
      static_cast<size_t>(layout::ceil_div(shape.out, 128) * layout::ceil_div(shape.in, 128)),
      0.01f);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.05f);
  for (int64_t i = 0; i < shape.out * shape.in; ++i) {
    const float value = normal(random);
    const auto at = static_cast<size_t>(i);
    if (dtype == DType::kE4m3) {
      w.bytes[at] = layout::f32_to_e4m3(value * 1000);
    } else if (dtype == DType::kBf16) {
      const uint16_t bits = layout::f32_to_bf16(value);
      std::memcpy(&w.bytes[2 * at], &bits, 2);
    } else {
      std::memcpy(&w.bytes[4 * at], &value, 4);
    }
  }
  for (int64_t m = 1; m < w.count; ++m) {
    std::memcpy(w.bytes.data() + m * w.matrix_bytes, w.bytes.data(),
                static_cast<size_t>(w.matrix_bytes));
  }
  return w;
}

std::vector<float> make_x(int64_t rows, int64_t in) {
  std::vector<float> x(static_cast<size_t>(rows * in));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  return x;
}

void run_ours(benchmark::State& state, const Shape& shape, DType dtype, int64_t rows) {
  const auto backend = flags.make_backend();
  ops::ModelShape model;
  model.hidden_size = 6144;
  model.vocab_size = 1;
  model.num_attention_heads = 1;
  model.kv_lora_rank = model.qk_rope_head_dim = 64;
  model.intermediate_size = 12288;
  model.max_rows = model.max_context = 512;
  backend->prepare(model);
  const Weights w = make_weights(dtype, shape, rows <= 16);
  const std::vector<float> x = make_x(rows, shape.in);
  std::vector<float> y(static_cast<size_t>(rows * shape.out));
  int64_t turn = 0;
  for (auto _ : state) {
    backend->linear({.num_rows = static_cast<int32_t>(rows),
                     .x = x.data(),
                     .weight = {w.bytes.data() + turn++ % w.count * w.matrix_bytes, dtype,
                                w.scales.data(), shape.out, shape.in},
                     .fp8_activations = dtype == DType::kE4m3,
                     .y = y.data()});
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["weights_GB/s"] = benchmark::Counter(
      runs * static_cast<double>(w.matrix_bytes) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GFLOP/s"] = benchmark::Counter(
      runs * 2e-9 * static_cast<double>(rows * shape.out * shape.in), benchmark::Counter::kIsRate);
}

void run_rival(benchmark::State& state, const Shape& shape, bool bf16, int64_t rows) {
  const Weights w = make_weights(DType::kF32, shape, false);
  const std::vector<float> x = make_x(rows, shape.in);
  std::vector<float> y(static_cast<size_t>(rows * shape.out));
  const std::unique_ptr<Rival> rival(make_rival(reinterpret_cast<const float*>(w.bytes.data()),
                                                rows, shape.in, shape.out, bf16, flags.threads));
  if (rival == nullptr) {
    state.SkipWithError("oneDNN is not installed or has no such kernel here");
    return;
  }
  for (auto _ : state) rival->run(x.data(), y.data());
  state.counters["GFLOP/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 2e-9 *
                             static_cast<double>(rows * shape.out * shape.in),
                         benchmark::Counter::kIsRate);
}

// A plain sum over memory with as many threads: the bandwidth that decode is measured against.
void read_bandwidth(benchmark::State& state) {
  std::vector<uint64_t> data(static_cast<size_t>(kColdBytes / 8), 1);
  ThreadPool pool(flags.threads);
  std::vector<uint64_t> sums(static_cast<size_t>(flags.threads) * 8);
  constexpr int64_t kWords = 1 << 15;
  for (auto _ : state) {
    pool.parallel_for(static_cast<int64_t>(data.size()) / kWords, [&](int64_t item, int thread) {
      uint64_t lanes[16] = {};
      const uint64_t* from = data.data() + item * kWords;
      for (int64_t i = 0; i < kWords; i += 16) {
        for (int64_t l = 0; l < 16; ++l) lanes[l] += from[i + l];
      }
      for (const uint64_t lane : lanes) sums[static_cast<size_t>(thread) * 8] += lane;
    });
    benchmark::DoNotOptimize(sums.data());
  }
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(kColdBytes) * 1e-9,
      benchmark::Counter::kIsRate);
}

// With one thread rates are by CPU time, which a busy machine disturbs less.
void timed(benchmark::internal::Benchmark* entry) {
  if (flags.threads > 1) entry->UseRealTime();
}

void register_all() {
  timed(benchmark::RegisterBenchmark("read_bandwidth", read_bandwidth));
  for (const Shape& shape : kShapes) {
    for (const DType dtype : {DType::kBf16, DType::kE4m3, DType::kF32}) {
      for (const int64_t rows : {1, 2, 4, 8, 32, 512}) {
        const std::string name = std::string("winnow/") + to_string(dtype) + "/" + shape.name +
                                 "/rows:" + std::to_string(rows);
        timed(benchmark::RegisterBenchmark(name.c_str(), run_ours, shape, dtype, rows));
      }
    }
    for (const bool bf16 : {false, true}) {
      const std::string name =
          std::string("onednn/") + (bf16 ? "bf16/" : "f32/") + shape.name + "/rows:512";
      timed(benchmark::RegisterBenchmark(name.c_str(), run_rival, shape, bf16, 512));
    }
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
