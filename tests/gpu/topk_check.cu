// Top-k against a sort on the host, over the shapes and score patterns that broke other selections.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/gpu_check.h"
#include "kernels/indexer.h"

namespace winnow::gpu_check {
namespace {

constexpr int32_t kPage = 64;

enum class Scores {
  kNormal,
  kEqual,
  kZeroPlateau,  // 8,850 exact zeros (of both signs) among others
  kOneHalfBin,   // differ only below fp16's precision
  kMinusInf,
  kNan,
  kAscending,
  kDescending,
  kFewValues,
  kBlocksOfEqual,
};
constexpr Scores kAllScores[] = {Scores::kNormal,       Scores::kEqual,      Scores::kZeroPlateau,
                                 Scores::kOneHalfBin,   Scores::kMinusInf,   Scores::kNan,
                                 Scores::kAscending,    Scores::kDescending, Scores::kFewValues,
                                 Scores::kBlocksOfEqual};

float normal(uint32_t seed) {
  const float u = (static_cast<float>(hash32(seed)) + 1.0f) / 4294967808.0f;
  const float v = static_cast<float>(hash32(seed ^ 0x5bd1e995u)) / 4294967296.0f;
  return std::sqrt(-2.0f * std::log(u)) * std::cos(6.2831853f * v);
}

float score_of(Scores scores, int64_t i, int64_t tokens, uint32_t seed) {
  const uint32_t h = hash32(static_cast<uint64_t>(seed) << 32 | static_cast<uint32_t>(i));
  switch (scores) {
    case Scores::kNormal:
      return normal(h);
    case Scores::kEqual:
      return 0.25f;
    case Scores::kZeroPlateau:
      if (i % 11 == 3) return normal(h);
      return h & 1 ? 0.0f : -0.0f;
    case Scores::kOneHalfBin:
      return 1.0f + static_cast<float>(h % 4096) * 0x1p-23f;
    case Scores::kMinusInf:
      return h % 100 < 2 ? normal(h) : -std::numeric_limits<float>::infinity();
    case Scores::kNan:
      return h % 100 < 60   ? std::numeric_limits<float>::quiet_NaN()
             : h % 100 < 98 ? -std::numeric_limits<float>::infinity()
                            : normal(h);
    case Scores::kAscending:
      return static_cast<float>(i) - static_cast<float>(tokens) / 2;
    case Scores::kDescending:
      return static_cast<float>(tokens) / 2 - static_cast<float>(i);
    case Scores::kFewValues:
      return static_cast<float>(h % 7) - 3.0f;
    case Scores::kBlocksOfEqual:
      return static_cast<float>((i / 3000) * 37 % 11);
  }
  return 0;
}

struct Case {
  std::vector<int32_t> tokens;  // a row each
  int32_t k = 2048;
  int64_t stride_pad = 0;
  bool bound_by_tokens = true;
};

struct Expected {
  std::vector<int32_t> slots, lens;
};

Expected select_on_host(const Case& c,
                        const std::vector<float>& logits,
                        int64_t stride,
                        const std::vector<int32_t>& pages,
                        int64_t pages_stride) {
  Expected e;
  for (size_t t = 0; t < c.tokens.size(); ++t) {
    const float* row = logits.data() + static_cast<int64_t>(t) * stride;
    std::vector<int32_t> order(static_cast<size_t>(c.tokens[t]));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    const auto value = [&](int32_t i) {
      return std::isnan(row[i]) ? -std::numeric_limits<float>::infinity() : row[i];
    };
    const auto better = [&](int32_t a, int32_t b) {
      return value(a) != value(b) ? value(a) > value(b) : a < b;
    };
    const size_t found = std::min(order.size(), static_cast<size_t>(c.k));
    std::nth_element(order.begin(), order.begin() + static_cast<int64_t>(found), order.end(),
                     better);
    std::sort(order.begin(), order.begin() + static_cast<int64_t>(found));
    for (size_t i = 0; i < static_cast<size_t>(c.k); ++i) {
      e.slots.push_back(i < found ? pages[t * static_cast<size_t>(pages_stride) +
                                          static_cast<size_t>(order[i] / kPage)] *
                                            kPage +
                                        order[i] % kPage
                                  : -1);
    }
    e.lens.push_back(static_cast<int32_t>(found));
  }
  return e;
}

void check_case(
    Context& context, const Case& c, Scores scores, const std::string& name, int repeats = 1) {
  const auto rows = static_cast<int64_t>(c.tokens.size());
  const int64_t most = std::max(1, *std::max_element(c.tokens.begin(), c.tokens.end()));
  const int64_t stride = (most + 3) / 4 * 4 + c.stride_pad;
  const int64_t pages_stride = (most + kPage - 1) / kPage + 1;
  std::vector<float> logits(static_cast<size_t>(rows * stride),
                            std::numeric_limits<float>::infinity());
  std::vector<int32_t> pages(static_cast<size_t>(rows * pages_stride)), positions, seqs;
  for (int64_t t = 0; t < rows; ++t) {
    const int64_t n = c.tokens[static_cast<size_t>(t)];
    for (int64_t i = 0; i < n; ++i) {
      logits[static_cast<size_t>(t * stride + i)] =
          score_of(scores, i, n, static_cast<uint32_t>(t) + 77);
    }
    for (int64_t i = 0; i < pages_stride; ++i) {
      pages[static_cast<size_t>(t * pages_stride + i)] =
          static_cast<int32_t>(hash32(static_cast<uint64_t>(t * 7919 + i)) % 30000000);
    }
    positions.push_back(static_cast<int32_t>(n) - 1);
    seqs.push_back(static_cast<int32_t>(t));
  }
  const Expected expected = select_on_host(c, logits, stride, pages, pages_stride);
  const DeviceArray<float> d_logits(logits);
  const DeviceArray<int32_t> d_pages(pages), d_positions(positions), d_seqs(seqs);
  DeviceArray<int32_t> slots(static_cast<size_t>(rows * c.k)), lens(static_cast<size_t>(rows));
  for (int i = 0; i < repeats; ++i) {
    slots.poison();
    lens.poison();
    CUDA_OK(kernels::portable::topk({.rows = {.num_rows = static_cast<int32_t>(rows),
                                              .num_seqs = static_cast<int32_t>(rows),
                                              .positions = d_positions.get(),
                                              .seq_of_row = d_seqs.get(),
                                              .page_tables = d_pages.get(),
                                              .page_table_stride = pages_stride},
                                     .logits = d_logits.get(),
                                     .logits_stride = stride,
                                     .max_tokens = most,
                                     .page_size = kPage,
                                     .topk = c.k,
                                     .slots = slots.get(),
                                     .lens = lens.get()},
                                    nullptr));
    const bool ok = slots.download() == expected.slots && lens.download() == expected.lens;
    context.expect(ok, name, "slots or lens differ, repeat " + std::to_string(i));
    if (!ok) return;
  }
}

void bench_topk(Context& context, int32_t rows, int64_t tokens) {
  const std::string name = "topk_" + std::to_string(rows) + "x" + std::to_string(tokens);
  if (!context.wants(name)) return;
  std::vector<float> some(size_t{1} << 20);
  for (size_t i = 0; i < some.size(); ++i) some[i] = normal(static_cast<uint32_t>(i));
  DeviceArray<float> logits(static_cast<size_t>(rows * tokens));
  for (size_t at = 0; at < logits.size(); at += some.size()) {
    CUDA_OK(cudaMemcpy(logits.get() + at, some.data(),
                       std::min(some.size(), logits.size() - at) * 4, cudaMemcpyHostToDevice));
  }
  const std::vector<int32_t> positions(static_cast<size_t>(rows), static_cast<int32_t>(tokens) - 1);
  const std::vector<int32_t> zeros(static_cast<size_t>(tokens / kPage + rows), 0);
  const DeviceArray<int32_t> d_positions(positions), d_zeros(zeros);
  DeviceArray<int32_t> slots(static_cast<size_t>(rows) * 2048), lens(static_cast<size_t>(rows));
  const auto call = [&](cudaStream_t stream) {
    CUDA_OK(kernels::portable::topk({.rows = {.num_rows = rows,
                                              .num_seqs = rows,
                                              .positions = d_positions.get(),
                                              .seq_of_row = d_zeros.get(),
                                              .page_tables = d_zeros.get(),
                                              .page_table_stride = 0},
                                     .logits = logits.get(),
                                     .logits_stride = tokens,
                                     .max_tokens = tokens,
                                     .page_size = kPage,
                                     .topk = 2048,
                                     .slots = slots.get(),
                                     .lens = lens.get()},
                                    stream));
  };
  const float us = median_us_cold(call);
  const float warm =
      us_in_graph([&](cudaStream_t stream, int) { call(stream); }, rows > 100 ? 2 : 20);
  context.record(name,
                 {.us = us, .graph_us = warm, .bytes = 4.0 * rows * static_cast<double>(tokens)});
}

}  // namespace

void check_topk(Context& context) {
  const std::vector<int32_t> edges = {0,    1,    63,    64,    65,    2047,  2048,  2049,
                                      4097, 8192, 10240, 10241, 16389, 30000, 100000};
  const std::vector<int32_t> few = {131072, 99999};
  int index = 0;
  for (const Scores scores : kAllScores) {
    const std::string name = "topk scores " + std::to_string(index++);
    check_case(context, {.tokens = edges}, scores, name + " edges", context.small ? 1 : 3);
    check_case(context, {.tokens = few, .stride_pad = 1}, scores, name + " few rows, odd stride");
    check_case(context, {.tokens = few}, scores, name + " few rows", context.small ? 1 : 20);
    // Few enough rows for a cluster of 16 each, every score in a register.
    for (size_t i = 0; i < edges.size(); i += 3) {
      check_case(context, {.tokens = {edges[i], edges[i + 1], edges[i + 2], 120000}}, scores,
                 name + " few rows, edges " + std::to_string(i));
    }
    check_case(context, {.tokens = {100000}}, scores, name + " one row", context.small ? 1 : 20);
    if (context.small) continue;
    std::vector<int32_t> many;  // one block a row
    for (int i = 0; i < 150; ++i) many.push_back(3000 + i * 211);
    check_case(context, {.tokens = many}, scores, name + " many rows");
    for (const int32_t k : {1, 16, 511, 2000}) {
      check_case(context, {.tokens = edges, .k = k}, scores, name + " k " + std::to_string(k));
      check_case(context, {.tokens = {70001}, .k = k}, scores,
                 name + " one row, k " + std::to_string(k));
    }
    check_case(context, {.tokens = {1048576, 5, 700000}}, scores, name + " 1M tokens");
  }
  if (!context.small) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 70000; ++i) tokens.push_back(1 + i % 97);
    check_case(context, {.tokens = tokens, .k = 64}, Scores::kNormal, "topk 70,000 rows");
  }
  if (context.bench) {
    const std::pair<int, int64_t> sizes[] = {{1, 131072},  {16, 32768},   {64, 32768}, {64, 131072},
                                             {4096, 8192}, {4096, 65536}, {1, 1048576}};
    for (const auto& [rows, tokens] : sizes) bench_topk(context, rows, tokens);
  }
}

}  // namespace winnow::gpu_check
