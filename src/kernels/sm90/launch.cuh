// Launches that overlap the kernel before them, alone or in clusters.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace winnow::kernels::sm90 {

struct LaunchShape {
  int64_t blocks = 1;
  dim3 threads = 1;
  size_t bytes = 0;  // of dynamic shared memory
  int cluster = 1;   // blocks of a cluster
};

// The kernel starts while the one before it still runs, and waits for its results itself
// (cudaGridDependencySynchronize) before it touches memory.
template <typename Kernel, typename... Args>
cudaError_t launch_overlapped(Kernel kernel,
                              const LaunchShape& shape,
                              cudaStream_t stream,
                              const Args&... args) {
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = shape.threads;
  config.dynamicSmemBytes = shape.bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = shape.cluster > 1 ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, args...);
}

}  // namespace winnow::kernels::sm90
