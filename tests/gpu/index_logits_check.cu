// Index logits against sums in double on the host, and the same bits whatever the batch.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/gpu_check.h"
#include "kernels/indexer.h"
#include "layout/float_formats.h"

namespace winnow::gpu_check {
namespace {

constexpr int32_t kPage = 64;
constexpr int32_t kDim = 128;
constexpr layout::IndexKeyGeometry kKeys{layout::IndexKeyLayout::kFp8_132, kDim, kPage};

// Row t sees tokens[t] tokens of sequence seqs[t].
struct Case {
  std::vector<int32_t> tokens = {}, seqs = {};
  int32_t heads = 32;
  int64_t key_begin = 0, key_end = 0;
  int32_t first_page = 0;  // the pool's pages in use start here
};

__host__ __device__ inline uint8_t random_e4m3(uint32_t h) {
  const auto code = static_cast<uint8_t>((h & 0x80) | (0x18 + h % 0x2c));
  return code;
}

struct Inputs {
  DeviceArray<uint8_t> q, keys;
  DeviceArray<float> head_weights;
  DeviceArray<int32_t> positions, seqs, pages;
  std::vector<uint8_t> host_q;
  std::vector<float> host_weights;
  std::vector<std::vector<uint8_t>> host_keys;  // a sequence each, [token][kDim]
  std::vector<std::vector<float>> host_scales;
  int64_t pages_stride = 0;
  int32_t num_pages = 0, num_seqs = 0;
};

Inputs make_inputs(const Case& c) {
  Inputs in;
  const auto rows = static_cast<int64_t>(c.tokens.size());
  in.num_seqs = *std::max_element(c.seqs.begin(), c.seqs.end()) + 1;
  std::vector<int32_t> longest(static_cast<size_t>(in.num_seqs), 0);
  for (size_t t = 0; t < c.tokens.size(); ++t) {
    auto& most = longest[static_cast<size_t>(c.seqs[t])];
    most = std::max(most, c.tokens[t]);
  }
  int64_t used = 0;
  for (const int32_t n : longest) {
    used += (n + kPage - 1) / kPage;
    in.pages_stride = std::max<int64_t>(in.pages_stride, (n + kPage - 1) / kPage);
  }
  in.pages_stride += 3;
  in.num_pages = c.first_page + static_cast<int32_t>(2 * used + 1);
  in.keys = DeviceArray<uint8_t>(static_cast<size_t>(in.num_pages * kKeys.page_bytes()));
  // Every second page of the used part, in shuffled order; the rest stays NaN.
  std::vector<int32_t> order(static_cast<size_t>(used));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = c.first_page + 2 * static_cast<int32_t>(i) + 1;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[hash32(i) % i]);
  std::vector<int32_t> pages(static_cast<size_t>(in.num_seqs * in.pages_stride), 2147483647 / 64);
  size_t at = 0;
  std::vector<uint8_t> page(static_cast<size_t>(kKeys.page_bytes()));
  for (int32_t s = 0; s < in.num_seqs; ++s) {
    const int32_t n = longest[static_cast<size_t>(s)];
    in.host_keys.emplace_back(static_cast<size_t>(n) * kDim);
    in.host_scales.emplace_back(static_cast<size_t>(n));
    for (int32_t p = 0; p * kPage < n; ++p) {
      std::fill(page.begin(), page.end(), 0xff);
      for (int32_t i = p * kPage; i < std::min(n, (p + 1) * kPage); ++i) {
        for (int32_t d = 0; d < kDim; ++d) {
          const uint8_t code = random_e4m3(hash32((static_cast<uint64_t>(s) << 40) + i * 128 + d));
          in.host_keys.back()[static_cast<size_t>(i) * kDim + static_cast<size_t>(d)] = code;
          page[static_cast<size_t>(i % kPage * kDim + d)] = code;
        }
        const float scale =
            0.01f + static_cast<float>(hash32(static_cast<uint64_t>(i) + 99) % 1000) * 1e-4f;
        in.host_scales.back()[static_cast<size_t>(i)] = scale;
        std::memcpy(&page[static_cast<size_t>(kKeys.page_scales_offset() + 4 * (i % kPage))],
                    &scale, 4);
      }
      pages[static_cast<size_t>(s * in.pages_stride + p)] = order[at];
      CUDA_OK(cudaMemcpy(in.keys.get() + int64_t{order[at]} * kKeys.page_bytes(), page.data(),
                         page.size(), cudaMemcpyHostToDevice));
      ++at;
    }
  }
  in.host_q.resize(static_cast<size_t>(rows * c.heads * kDim));
  for (size_t i = 0; i < in.host_q.size(); ++i) in.host_q[i] = random_e4m3(hash32(i + 12345678));
  in.host_weights.resize(static_cast<size_t>(rows * c.heads));
  for (size_t i = 0; i < in.host_weights.size(); ++i) {
    in.host_weights[i] = static_cast<float>(static_cast<int32_t>(hash32(i + 555))) * 0x1p-31f;
  }
  std::vector<int32_t> positions;
  for (const int32_t n : c.tokens) positions.push_back(n - 1);
  in.q = DeviceArray<uint8_t>(in.host_q);
  in.head_weights = DeviceArray<float>(in.host_weights);
  in.positions = DeviceArray<int32_t>(positions);
  in.seqs = DeviceArray<int32_t>(c.seqs);
  in.pages = DeviceArray<int32_t>(pages);
  return in;
}

// first_row, num_rows: a part of the rows; as_decode: tell the kernel that every row has a
// sequence.
void run(const Case& c,
         const Inputs& in,
         int32_t first_row,
         int32_t num_rows,
         bool as_decode,
         DeviceArray<float>& logits,
         int64_t stride) {
  const int64_t bytes = kernels::sm90::index_logits_workspace_bytes(num_rows);
  DeviceArray<uint8_t> workspace(static_cast<size_t>(bytes));
  CUDA_OK(kernels::sm90::index_logits(
      {.rows = {.num_rows = num_rows,
                .num_seqs = as_decode ? num_rows : 1,
                .positions = in.positions.get() + first_row,
                .seq_of_row = in.seqs.get() + first_row,
                .page_tables = in.pages.get(),
                .page_table_stride = in.pages_stride},
       .q = in.q.get() + int64_t{first_row} * c.heads * kDim,
       .head_weights = in.head_weights.get() + int64_t{first_row} * c.heads,
       .index_n_heads = c.heads,
       .keys = kKeys,
       .key_data = in.keys.get(),
       .page_stride_bytes = kKeys.page_bytes(),
       .num_pages = in.num_pages,
       .key_begin = c.key_begin,
       .key_end = c.key_end,
       .logits = logits.get() + first_row * stride,
       .logits_stride = stride,
       .workspace = workspace.get(),
       .workspace_bytes = bytes},
      nullptr));
  CUDA_OK(cudaDeviceSynchronize());
}

// Every `step`-th (row, column) against the host.
std::string compare(const Case& c,
                    const Inputs& in,
                    const std::vector<float>& logits,
                    int64_t stride,
                    int64_t step) {
  int64_t at = 0;
  for (size_t t = 0; t < c.tokens.size(); ++t) {
    for (int64_t col = 0; col < stride; ++col, ++at) {
      const float got = logits[t * static_cast<size_t>(stride) + static_cast<size_t>(col)];
      const int64_t key = c.key_begin + col;
      const std::string where = " at row " + std::to_string(t) + " key " + std::to_string(key) +
                                ": " + std::to_string(got);
      if (key >= c.key_end) {
        if (!std::isnan(got)) return "written beyond key_end" + where;
        continue;
      }
      if (key >= c.tokens[t]) {
        if (got != -std::numeric_limits<float>::infinity()) return "not -inf" + where;
        continue;
      }
      if (at % step != 0) {
        if (!std::isfinite(got)) return "not finite" + where;
        continue;
      }
      const auto seq = static_cast<size_t>(c.seqs[t]);
      double sum = 0, size = 0;
      for (int32_t h = 0; h < c.heads; ++h) {
        double product = 0, most = 0;
        for (int32_t d = 0; d < kDim; ++d) {
          const double term =
              static_cast<double>(layout::e4m3_to_f32(
                  in.host_q[(t * static_cast<size_t>(c.heads) + static_cast<size_t>(h)) * kDim +
                            static_cast<size_t>(d)])) *
              static_cast<double>(layout::e4m3_to_f32(
                  in.host_keys[seq][static_cast<size_t>(key) * kDim + static_cast<size_t>(d)]));
          product += term;
          most = std::max(most, std::fabs(term));
        }
        const double w = static_cast<double>(
            in.host_weights[t * static_cast<size_t>(c.heads) + static_cast<size_t>(h)]);
        sum += std::max(product, 0.0) * w;
        size += (std::fabs(product) + most) * std::fabs(w);
      }
      const double scale = static_cast<double>(in.host_scales[seq][static_cast<size_t>(key)]);
      // The tensor cores align e4m3 products to the largest with 13 bits behind its exponent.
      if (!(std::fabs(static_cast<double>(got) - sum * scale) <= size * scale * 1e-3)) {
        return "want " + std::to_string(sum * scale) + where;
      }
    }
  }
  return "";
}

void check_case(Context& context, const Case& c, const std::string& name, int repeats = 2) {
  const Inputs in = make_inputs(c);
  const auto rows = static_cast<int32_t>(c.tokens.size());
  const int64_t stride = c.key_end - c.key_begin + 5;
  DeviceArray<float> logits(static_cast<size_t>(rows * stride));
  run(c, in, 0, rows, false, logits, stride);
  const std::vector<float> first = logits.download();
  int64_t products = 0;
  for (const int32_t n : c.tokens) products += int64_t{n} * c.heads;
  const std::string wrong = compare(c, in, first, stride, 1 + products / 1000000);
  context.expect(wrong.empty(), name, wrong);
  const auto same_bits = [&](const std::string& what) {
    const std::vector<float> again = logits.download();
    context.expect(std::memcmp(first.data(), again.data(), first.size() * 4) == 0, name, what);
  };
  for (int i = 1; i < repeats; ++i) {
    logits.poison();
    run(c, in, 0, rows, false, logits, stride);
    same_bits("bits of repeat " + std::to_string(i) + " differ");
  }
  logits.poison();
  run(c, in, 0, rows, true, logits, stride);
  same_bits("the single-row kernel gives other bits");
  logits.poison();
  run(c, in, 0, rows / 3, false, logits, stride);
  run(c, in, rows / 3, rows - rows / 3, false, logits, stride);
  same_bits("another batch gives other bits");
}

// Rows begin..begin + count - 1 of a prompt chunk of sequence seq.
void add_chunk(Case& c, int32_t seq, int32_t begin, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    c.tokens.push_back(begin + i + 1);
    c.seqs.push_back(seq);
  }
}

__global__ void random_keys_kernel(uint8_t* bytes, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint64_t x = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ull;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ull;
    const auto h = static_cast<uint32_t>(x >> 32);
    const int64_t in_page = i % 8448;
    bytes[i] = in_page < 8192     ? random_e4m3(h)
               : in_page % 4 == 3 ? 0x3c
                                  : static_cast<uint8_t>(h & 0x7f);
  }
}

struct BenchCase {
  int32_t rows, heads;
  int64_t tokens;
  bool decode;
};

void bench(Context& context, const BenchCase& b) {
  const std::string name = std::string(b.decode ? "decode_" : "prefill_") + std::to_string(b.rows) +
                           "x" + std::to_string(b.tokens) + "_h" + std::to_string(b.heads);
  if (!context.wants("index_logits_" + name) && !context.wants("index_logits_topk_" + name)) return;
  const int64_t pages_a_seq = b.tokens / kPage, seqs = b.decode ? b.rows : 1;
  const auto num_pages = static_cast<int32_t>(pages_a_seq * seqs);
  DeviceArray<uint8_t> keys(static_cast<size_t>(num_pages * kKeys.page_bytes()));
  DeviceArray<uint8_t> q(static_cast<size_t>(int64_t{b.rows} * b.heads * kDim + 8448));
  random_keys_kernel<<<1024, 256>>>(keys.get(), static_cast<int64_t>(keys.size()));
  random_keys_kernel<<<1024, 256>>>(q.get(), static_cast<int64_t>(q.size()) / 8448 * 8448);
  std::vector<int32_t> positions, seq_of_row, pages;
  for (int32_t t = 0; t < b.rows; ++t) {
    seq_of_row.push_back(b.decode ? t : 0);
    positions.push_back(static_cast<int32_t>(b.tokens) - 1 - (b.decode ? 0 : b.rows - 1 - t));
  }
  for (int32_t i = 0; i < num_pages; ++i) pages.push_back(i);
  for (size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[hash32(i) % i]);
  std::vector<float> weights(static_cast<size_t>(b.rows * b.heads));
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<float>(hash32(i) % 1000) * 1e-3f - 0.2f;
  const DeviceArray<int32_t> d_positions(positions), d_seqs(seq_of_row), d_pages(pages);
  const DeviceArray<float> d_weights(weights);
  const int64_t bytes = kernels::sm90::index_logits_workspace_bytes(b.rows);
  DeviceArray<uint8_t> workspace(static_cast<size_t>(bytes));
  DeviceArray<float> logits(static_cast<size_t>(b.rows * b.tokens));
  DeviceArray<int32_t> slots(static_cast<size_t>(b.rows) * 2048), lens(static_cast<size_t>(b.rows));
  const kernels::RowsView rows{.num_rows = b.rows,
                               .num_seqs = static_cast<int32_t>(seqs),
                               .positions = d_positions.get(),
                               .seq_of_row = d_seqs.get(),
                               .page_tables = d_pages.get(),
                               .page_table_stride = pages_a_seq};
  const auto logits_only = [&](cudaStream_t stream) {
    CUDA_OK(kernels::sm90::index_logits({.rows = rows,
                                         .q = q.get(),
                                         .head_weights = d_weights.get(),
                                         .index_n_heads = b.heads,
                                         .keys = kKeys,
                                         .key_data = keys.get(),
                                         .page_stride_bytes = kKeys.page_bytes(),
                                         .num_pages = num_pages,
                                         .key_end = b.tokens,
                                         .fill_masked = false,
                                         .logits = logits.get(),
                                         .logits_stride = b.tokens,
                                         .workspace = workspace.get(),
                                         .workspace_bytes = bytes},
                                        stream));
  };
  const auto both = [&](cudaStream_t stream) {
    logits_only(stream);
    CUDA_OK(kernels::portable::topk({.rows = rows,
                                     .logits = logits.get(),
                                     .logits_stride = b.tokens,
                                     .max_tokens = b.tokens,
                                     .page_size = kPage,
                                     .topk = 2048,
                                     .slots = slots.get(),
                                     .lens = lens.get()},
                                    stream));
  };
  double tokens = 0;
  for (const int32_t p : positions) tokens += p + 1;
  const float us = median_us_cold(logits_only), us_both = median_us_cold(both);
  const int calls = b.decode ? 20 : 1;
  const float graph = us_in_graph([&](cudaStream_t s, int) { logits_only(s); }, calls);
  const float graph_both = us_in_graph([&](cudaStream_t s, int) { both(s); }, calls);
  const Rate logits_rate{.us = us,
                         .graph_us = graph,
                         .flops = 2 * tokens * b.heads * kDim,
                         .bytes = 132.0 * static_cast<double>(b.tokens * seqs) + 4 * tokens,
                         .e4m3 = true};
  context.record("index_logits_" + name, logits_rate);
  Rate both_rate = logits_rate;
  both_rate.us = us_both;
  both_rate.graph_us = graph_both;
  context.record("index_logits_topk_" + name, both_rate);
}

}  // namespace

void check_index_logits(Context& context) {
  for (const int32_t heads : {8, 32, 64, 24, 40, 128, 72}) {
    if (context.small && heads != 32 && heads != 64) continue;
    const std::string name = "index_logits " + std::to_string(heads) + " heads";
    Case chunk{.heads = heads, .key_end = 600};
    add_chunk(chunk, 0, 517, 45);
    check_case(context, chunk, name + " chunk", context.small ? 2 : 20);
    Case mixed{.heads = heads, .key_end = 2200};
    add_chunk(mixed, 0, 70, 1);
    add_chunk(mixed, 1, 0, 37);
    add_chunk(mixed, 2, 2100, 1);
    add_chunk(mixed, 3, 63, 2);
    add_chunk(mixed, 4, 127, 70);
    mixed.tokens.push_back(0);
    mixed.seqs.push_back(4);
    check_case(context, mixed, name + " mixed");
    Case range = mixed;
    range.key_begin = 77;
    range.key_end = 1111;
    check_case(context, range, name + " key range");
  }
  Case edges{.heads = 32, .key_end = 4100};
  for (const int32_t n : {0, 1, 63, 64, 65, 2047, 2048, 2049, 4097}) {
    edges.tokens.push_back(n);
    edges.seqs.push_back(static_cast<int32_t>(edges.seqs.size()));
  }
  check_case(context, edges, "index_logits edges");
  if (!context.small) {
    Case far{.heads = 64, .key_end = 1000, .first_page = 300000};  // pool of 2.5 GB
    add_chunk(far, 0, 900, 20);
    check_case(context, far, "index_logits beyond 2^31 bytes");
    Case long_row{.heads = 32, .key_end = 100000};
    add_chunk(long_row, 0, 99998, 2);
    check_case(context, long_row, "index_logits 100k");
  }
  if (!context.bench) return;
  const BenchCase cases[] = {
      {4096, 64, 8192, false},  {4096, 64, 32768, false},  {4096, 64, 131072, false},
      {4096, 32, 8192, false},  {4096, 32, 32768, false},  {4096, 32, 65536, false},
      {4096, 32, 65536, false}, {4096, 32, 131072, false}, {1, 32, 32768, true},
      {1, 64, 131072, true},    {16, 64, 32768, true},     {16, 32, 32768, true},
      {64, 32, 32768, true},    {128, 64, 8192, true},     {64, 64, 131072, true},
      {64, 32, 131072, true},
  };
  for (const BenchCase& b : cases) bench(context, b);
}

}  // namespace winnow::gpu_check
