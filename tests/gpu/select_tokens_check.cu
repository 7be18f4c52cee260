// select_tokens against a sort on the host of the logits that index_logits gives, whatever the
// budget cuts the rows into.
#include <algorithm>

#include "gpu/gpu_check.h"
#include "kernels/indexer.h"

namespace winnow::gpu_check {
namespace {

constexpr int32_t kPage = 64;
constexpr int32_t kDim = 128;
constexpr layout::IndexKeyGeometry kKeys{layout::IndexKeyLayout::kFp8_132, kDim, kPage};

// Finite e4m3 values and positive scales everywhere.
__global__ void random_bytes_kernel(uint8_t* bytes, int64_t count, int64_t page_bytes) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint64_t x = static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15ull;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ull;
    const auto h = static_cast<uint32_t>(x >> 32);
    const auto code = static_cast<uint8_t>((h & 0x80) | (0x18 + h % 0x2c));
    const int64_t in_page = i % page_bytes;
    bytes[i] = in_page < kPage * kDim ? code
               : in_page % 4 == 3     ? 0x3c
                                      : static_cast<uint8_t>(h & 0x7f);
  }
}

struct Batch {
  std::vector<int32_t> tokens, seqs, pages;
  int64_t pages_stride = 0;
  int32_t num_seqs = 0, num_pages = 0, heads = 0;
  DeviceArray<int32_t> d_positions, d_seqs, d_pages, slots, lens;
  DeviceArray<uint8_t> keys, q;
  DeviceArray<float> weights;

  Batch(std::vector<int32_t> row_tokens, std::vector<int32_t> row_seqs, int32_t index_heads)
      : tokens(std::move(row_tokens)), seqs(std::move(row_seqs)), heads(index_heads) {
    num_seqs = *std::max_element(seqs.begin(), seqs.end()) + 1;
    pages_stride = (max_tokens() + kPage - 1) / kPage;
    num_pages = static_cast<int32_t>(num_seqs * pages_stride);
    for (int32_t i = 0; i < num_pages; ++i) pages.push_back(i);
    for (size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[hash32(i) % i]);
    std::vector<int32_t> positions;
    for (const int32_t n : tokens) positions.push_back(n - 1);
    std::vector<float> host_weights;
    for (size_t i = 0; i < tokens.size() * static_cast<size_t>(heads); ++i) {
      host_weights.push_back(static_cast<float>(hash32(i) % 1000) * 1e-3f - 0.3f);
    }
    d_positions = DeviceArray<int32_t>(positions);
    d_seqs = DeviceArray<int32_t>(seqs);
    d_pages = DeviceArray<int32_t>(pages);
    weights = DeviceArray<float>(host_weights);
    keys = DeviceArray<uint8_t>(static_cast<size_t>(num_pages * kKeys.page_bytes()));
    q = DeviceArray<uint8_t>(tokens.size() * static_cast<size_t>(heads * kDim));
    random_bytes_kernel<<<1024, 256>>>(keys.get(), static_cast<int64_t>(keys.size()),
                                       kKeys.page_bytes());
    random_bytes_kernel<<<1024, 256>>>(q.get(), static_cast<int64_t>(q.size()), kPage * kDim);
    CUDA_OK(cudaDeviceSynchronize());
  }
  int64_t max_tokens() const { return *std::max_element(tokens.begin(), tokens.end()); }
  kernels::RowsView rows() const {
    return {static_cast<int32_t>(tokens.size()),
            num_seqs,
            d_positions.get(),
            d_seqs.get(),
            d_pages.get(),
            pages_stride};
  }
  kernels::IndexLogitsParams logits_params(float* logits,
                                           int64_t stride,
                                           void* workspace,
                                           int64_t bytes) const {
    return {.rows = rows(),
            .q = q.get(),
            .head_weights = weights.get(),
            .index_n_heads = heads,
            .keys = kKeys,
            .key_data = keys.get(),
            .page_stride_bytes = kKeys.page_bytes(),
            .num_pages = num_pages,
            .key_end = max_tokens(),
            .logits = logits,
            .logits_stride = stride,
            .workspace = workspace,
            .workspace_bytes = bytes};
  }
  kernels::SelectTokensParams select_params(int32_t topk, void* workspace, int64_t bytes) const {
    return {.rows = rows(),
            .q = q.get(),
            .head_weights = weights.get(),
            .index_n_heads = heads,
            .keys = kKeys,
            .key_data = keys.get(),
            .page_stride_bytes = kKeys.page_bytes(),
            .num_pages = num_pages,
            .max_tokens = max_tokens(),
            .topk = topk,
            .slots = slots.get(),
            .lens = lens.get(),
            .workspace = workspace,
            .workspace_bytes = bytes};
  }
};

void check_batch(Context& context, Batch& b, int32_t topk, const std::string& name) {
  const auto num_rows = static_cast<int64_t>(b.tokens.size());
  const int64_t stride = b.max_tokens(),
                plan = kernels::sm90::index_logits_workspace_bytes(static_cast<int32_t>(num_rows));
  DeviceArray<uint8_t> plan_memory(static_cast<size_t>(plan));
  DeviceArray<float> d_logits(static_cast<size_t>(num_rows * stride));
  CUDA_OK(kernels::sm90::index_logits(
      b.logits_params(d_logits.get(), stride, plan_memory.get(), plan), nullptr));
  const std::vector<float> logits = d_logits.download();
  std::vector<int32_t> slots, lens;
  for (int64_t t = 0; t < num_rows; ++t) {
    const int32_t n = b.tokens[static_cast<size_t>(t)];
    std::vector<int32_t> order(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
    const float* row = logits.data() + t * stride;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t x, int32_t y) { return row[x] > row[y]; });
    const int32_t found = std::min(n, topk);
    std::sort(order.begin(), order.begin() + found);
    const int64_t table = b.seqs[static_cast<size_t>(t)] * b.pages_stride;
    for (int32_t i = 0; i < topk; ++i) {
      const int32_t p = i < found ? order[static_cast<size_t>(i)] : -1;
      slots.push_back(p < 0 ? -1
                            : b.pages[static_cast<size_t>(table + p / kPage)] * kPage + p % kPage);
    }
    lens.push_back(found);
  }
  b.slots = DeviceArray<int32_t>(slots.size());
  b.lens = DeviceArray<int32_t>(lens.size());
  for (const int64_t budget :
       {int64_t{1}, 40 * 4 * stride, 3 * num_rows * stride, int64_t{1} << 30}) {
    const int64_t bytes = kernels::sm90::select_tokens_workspace_bytes(
        static_cast<int32_t>(num_rows), stride, budget);
    DeviceArray<uint8_t> workspace(static_cast<size_t>(bytes));
    b.slots.poison();
    b.lens.poison();
    CUDA_OK(kernels::sm90::select_tokens(b.select_params(topk, workspace.get(), bytes), nullptr));
    const bool ok = b.slots.download() == slots && b.lens.download() == lens;
    context.expect(ok, name, "slots or lens differ with " + std::to_string(bytes) + " bytes");
    const int64_t least = 4 * stride + 1100;
    context.expect(bytes <= std::max(budget, least), name, "workspace above the budget");
  }
}

// A captured graph serves batches of other lengths and pages.
void check_graph(Context& context, Batch& b, const std::vector<int32_t>& other_tokens) {
  const auto rows = static_cast<int32_t>(b.tokens.size());
  const int64_t bytes =
      kernels::sm90::select_tokens_workspace_bytes(rows, b.max_tokens(), int64_t{1} << 28);
  DeviceArray<uint8_t> workspace(static_cast<size_t>(bytes));
  b.slots = DeviceArray<int32_t>(static_cast<size_t>(rows) * 2048);
  b.lens = DeviceArray<int32_t>(static_cast<size_t>(rows));
  const kernels::SelectTokensParams params = b.select_params(2048, workspace.get(), bytes);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_OK(cudaStreamCreate(&stream));
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int layer = 0; layer < 2; ++layer) CUDA_OK(kernels::sm90::select_tokens(params, stream));
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  bool same = true;
  for (int step = 0; step < 2; ++step) {
    if (step == 1) {
      std::vector<int32_t> positions;
      for (const int32_t n : other_tokens) positions.push_back(n - 1);
      b.d_positions.upload(positions);
      std::reverse(b.pages.begin(), b.pages.end());
      b.d_pages.upload(b.pages);
    }
    b.slots.poison();
    b.lens.poison();
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    const std::vector<int32_t> slots = b.slots.download(), lens = b.lens.download();
    b.slots.poison();
    b.lens.poison();
    CUDA_OK(kernels::sm90::select_tokens(params, nullptr));
    same = same && slots == b.slots.download() && lens == b.lens.download();
  }
  CUDA_OK(cudaGraphExecDestroy(exec));
  CUDA_OK(cudaGraphDestroy(graph));
  CUDA_OK(cudaStreamDestroy(stream));
  context.expect(same, "select_tokens in a graph, other batches: " + std::to_string(rows) + " rows",
                 "slots or lens differ");
}

void bench_select(
    Context& context, int32_t rows, int64_t tokens, int32_t heads, bool decode, int64_t budget) {
  const std::string name = "select_tokens_" + std::to_string(rows) + "x" + std::to_string(tokens) +
                           "_h" + std::to_string(heads) + "_" + std::to_string(budget >> 20) +
                           "MiB";
  if (!context.wants(name)) return;
  std::vector<int32_t> row_tokens, seqs;
  for (int32_t t = 0; t < rows; ++t) {
    row_tokens.push_back(static_cast<int32_t>(tokens) - (decode ? 0 : rows - 1 - t));
    seqs.push_back(decode ? t : 0);
  }
  Batch b(row_tokens, seqs, heads);
  b.slots = DeviceArray<int32_t>(static_cast<size_t>(rows) * 2048);
  b.lens = DeviceArray<int32_t>(static_cast<size_t>(rows));
  const int64_t bytes = kernels::sm90::select_tokens_workspace_bytes(rows, tokens, budget);
  DeviceArray<uint8_t> workspace(static_cast<size_t>(bytes));
  const auto call = [&](cudaStream_t stream) {
    CUDA_OK(kernels::sm90::select_tokens(b.select_params(2048, workspace.get(), bytes), stream));
  };
  const float us = median_us_cold(call);
  const float graph = us_in_graph([&](cudaStream_t stream, int) { call(stream); }, decode ? 20 : 1);
  double seen = 0;
  for (const int32_t n : row_tokens) seen += n;
  context.record(name, {.us = us,
                        .graph_us = graph,
                        .flops = 2 * seen * heads * 128,
                        .bytes = 132.0 * static_cast<double>(tokens) * (decode ? rows : 1),
                        .e4m3 = true,
                        .note = std::to_string(bytes >> 20) + " MiB of workspace"});
}

}  // namespace

void check_select_tokens(Context& context) {
  std::vector<int32_t> tokens, seqs;
  for (int32_t i = 0; i < (context.small ? 20 : 150); ++i) {  // a chunk across the K-th token
    tokens.push_back(2000 + i);
    seqs.push_back(0);
  }
  for (const int32_t n : {1, 64, 2047, 2048, 2049, 4097, 30000}) {
    tokens.push_back(n);
    seqs.push_back(seqs.back() + 1);
  }
  for (const int32_t heads : {32, 64}) {
    const std::string name = "select_tokens " + std::to_string(heads) + " heads";
    Batch mixed(tokens, seqs, heads);
    check_batch(context, mixed, 2048, name + " mixed");
    Batch decode({5000, 1, 20000, 2048, 9000}, {0, 1, 2, 3, 4}, heads);
    check_batch(context, decode, 2048, name + " decode");
    check_batch(context, decode, 64, name + " decode, k 64");
    check_graph(context, decode, {1, 20000, 3000, 6000, 17000});
  }
  if (!context.bench) return;
  constexpr int64_t kMiB = int64_t{1} << 20;
  bench_select(context, 1, 131072, 64, true, 256 * kMiB);
  bench_select(context, 16, 32768, 64, true, 256 * kMiB);
  bench_select(context, 64, 131072, 64, true, 256 * kMiB);
  bench_select(context, 4096, 65536, 32, false, 256 * kMiB);
  bench_select(context, 4096, 65536, 32, false, 2048 * kMiB);
  bench_select(context, 2048, 1048576, 32, false, 2048 * kMiB);
}

}  // namespace winnow::gpu_check
