// winnow_gpu_check [--small] [--bench | --bench-only] [--json FILE] [name ...]: runs the named
// checks (a prefix is enough), or all. Exit status 1 when any failed.
#include <cstring>

#include "gpu/gpu_check.h"

namespace winnow::gpu_check {

void check_sparse_mla(Context& context);
void check_cache_writes(Context& context);
void check_topk(Context& context);
void check_index_logits(Context& context);
void check_select_tokens(Context& context);

// One declaration above and one line here a check.
const std::vector<Check> kChecks = {
    {"sparse_mla", check_sparse_mla},
    {"cache_writes", check_cache_writes},
    {"topk", check_topk},
    {"index_logits", check_index_logits},
    {"select_tokens", check_select_tokens},
};

void Context::expect(bool ok, const std::string& name, const std::string& detail) {
  ++checks;
  if (!ok) {
    ++failures;
    std::printf("FAIL %s: %s\n", name.c_str(), detail.c_str());
  }
  if (receipt != nullptr) {
    std::fprintf(receipt, "{\"check\":\"%s\",\"ok\":%s,\"detail\":\"%s\"}\n", name.c_str(),
                 ok ? "true" : "false", detail.c_str());
  }
}

void Context::record(const std::string& name, const std::string& fields) {
  if (receipt != nullptr) {
    std::fprintf(receipt, "{\"bench\":\"%s\",%s}\n", name.c_str(), fields.c_str());
  }
}

}  // namespace winnow::gpu_check

int main(int argc, char** argv) {
  using namespace winnow::gpu_check;
  Context context;
  std::vector<const char*> names;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      context.small = true;
    } else if (std::strcmp(argv[i], "--bench") == 0) {
      context.bench = true;
    } else if (std::strcmp(argv[i], "--bench-only") == 0) {
      context.bench = context.bench_only = true;
    } else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      context.receipt = std::fopen(argv[++i], "w");
    } else {
      names.push_back(argv[i]);
    }
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no GPU: every check skipped\n");
    return 0;
  }
  cudaDeviceProp properties;
  CUDA_OK(cudaGetDeviceProperties(&properties, 0));
  if (properties.major != 9) {
    std::printf("%s is not a Hopper card: every check skipped\n", properties.name);
    return 0;
  }
  if (context.receipt != nullptr) {
    std::fprintf(context.receipt, "{\"gpu\":\"%s\",\"multiprocessors\":%d}\n", properties.name,
                 properties.multiProcessorCount);
  }
  for (const Check& check : kChecks) {
    bool chosen = names.empty();
    for (const char* name : names) {
      chosen = chosen || std::strncmp(check.name, name, std::strlen(name)) == 0;
    }
    if (!chosen) continue;
    const int failed_before = context.failures, done_before = context.checks;
    check.run(context);
    std::printf("%s: %d checks, %d failed\n", check.name, context.checks - done_before,
                context.failures - failed_before);
    std::fflush(stdout);
  }
  if (context.receipt != nullptr) std::fclose(context.receipt);
  return context.failures == 0 ? 0 : 1;
}
