#include <algorithm>

#include "gpu/gpu_check.h"

namespace winnow::gpu_check {
namespace {

constexpr size_t kFlushBytes = size_t{256} << 20;

}  // namespace

float median_us_cold(const std::function<void(cudaStream_t)>& call, int repeats) {
  static DeviceArray<char> flush(kFlushBytes);
  cudaStream_t stream;
  CUDA_OK(cudaStreamCreate(&stream));
  cudaEvent_t begin, end;
  CUDA_OK(cudaEventCreate(&begin));
  CUDA_OK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < repeats + 2; ++i) {
    CUDA_OK(cudaMemsetAsync(flush.get(), i, flush.size(), stream));
    CUDA_OK(cudaEventRecord(begin, stream));
    call(stream);
    CUDA_OK(cudaEventRecord(end, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    float ms = 0;
    CUDA_OK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) times.push_back(ms * 1000);
  }
  CUDA_OK(cudaEventDestroy(begin));
  CUDA_OK(cudaEventDestroy(end));
  CUDA_OK(cudaStreamDestroy(stream));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

float us_in_graph(const std::function<void(cudaStream_t, int)>& call, int calls) {
  cudaStream_t stream;
  CUDA_OK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; ++i) call(stream, i);
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin, end;
  CUDA_OK(cudaEventCreate(&begin));
  CUDA_OK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 7; ++i) {
    CUDA_OK(cudaEventRecord(begin, stream));
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaEventRecord(end, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    float ms = 0;
    CUDA_OK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) times.push_back(ms * 1000 / static_cast<float>(calls));
  }
  CUDA_OK(cudaGraphExecDestroy(exec));
  CUDA_OK(cudaGraphDestroy(graph));
  CUDA_OK(cudaEventDestroy(begin));
  CUDA_OK(cudaEventDestroy(end));
  CUDA_OK(cudaStreamDestroy(stream));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace winnow::gpu_check
