// winnow_gpu_check [--small] [--bench | --bench-only] [--only TEXT]... [--rivals SCRIPT]
// [--json FILE] [name ...]: runs the named checks (a prefix is enough), or all; --only: times the
// cases that have TEXT in their name. Exit status 1 when any failed.
#include <algorithm>
#include <cstring>

#include "gpu/gpu_check.h"

namespace winnow::gpu_check {

void check_sparse_mla(Context& context);
void check_cache_writes(Context& context);
void check_topk(Context& context);
void check_index_logits(Context& context);
void check_portable_index_logits(Context& context);
void check_select_tokens(Context& context);

// One declaration above and one line here a check.
const std::vector<Check> kChecks = {
    {"sparse_mla", check_sparse_mla},
    {"cache_writes", check_cache_writes},
    {"topk", check_topk},
    {"index_logits", check_index_logits},
    {"portable_index_logits", check_portable_index_logits},
    {"select_tokens", check_select_tokens},
};

bool Context::wants(const std::string& name) const {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& text) {
           return name.find(text) != std::string::npos;
         });
}

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

void Context::record(const std::string& name, const Rate& rate) {
  // What this card was seen to do: a device copy, and matrix products of e4m3 and of bf16.
  constexpr double kBytesPerUs = 4.275e6, kE4m3PerUs = 1524e6, kBf16PerUs = 803e6;
  const double floor_us =
      std::max(rate.bytes / kBytesPerUs, rate.flops / (rate.e4m3 ? kE4m3PerUs : kBf16PerUs));
  const double us = rate.us > 0 ? rate.us : rate.graph_us;
  char line[400];
  std::snprintf(line, sizeof line,
                "\"us\":%.2f,\"graph_us\":%.2f,\"tflops\":%.1f,\"gbs\":%.0f,\"floor_us\":%.2f",
                rate.us, rate.graph_us, rate.flops / us * 1e-6, rate.bytes / us * 1e-3, floor_us);
  if (receipt != nullptr) {
    std::fprintf(receipt, "{\"bench\":\"%s\",%s%s%s%s}\n", name.c_str(), line,
                 rate.note.empty() ? "" : ",\"note\":\"", rate.note.c_str(),
                 rate.note.empty() ? "" : "\"");
  }
  std::printf("%-66s %9.2f us %7.1f TFLOP/s %6.0f GB/s %4.0f %% of the floor's rate", name.c_str(),
              us, rate.flops / us * 1e-6, rate.bytes / us * 1e-3, floor_us / us * 100);
  if (rate.us > 0 && rate.graph_us > 0) std::printf(", in a graph %.2f us", rate.graph_us);
  std::printf("%s%s\n", rate.note.empty() ? "" : ", ", rate.note.c_str());
  std::fflush(stdout);
  timed.push_back(name);
}

namespace {

// The same cases by what Python has of flash_mla, deep_gemm and torch, in a process of its own. The
// script reads names and answers with JSON lines {"case":..., "rival":..., "us":...}.
void time_rivals(const Context& context, const std::string& script) {
  FILE* names = std::tmpfile();
  if (names == nullptr) return;
  for (const std::string& name : context.timed) std::fprintf(names, "%s\n", name.c_str());
  std::fflush(names);
  const std::string command =
      "python3 '" + script + "' < /proc/self/fd/" + std::to_string(fileno(names));
  FILE* answers = popen(command.c_str(), "r");
  if (answers == nullptr) return;
  char line[512];
  while (std::fgets(line, sizeof line, answers) != nullptr) {
    std::printf("rival %s", line);
    if (context.receipt != nullptr && line[0] == '{') std::fputs(line, context.receipt);
  }
  if (pclose(answers) != 0) std::printf("rivals: %s failed\n", script.c_str());
  std::fclose(names);
}

}  // namespace

}  // namespace winnow::gpu_check

int main(int argc, char** argv) {
  using namespace winnow::gpu_check;
  Context context;
  std::vector<const char*> names;
  std::string rivals;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      context.small = true;
    } else if (std::strcmp(argv[i], "--bench") == 0) {
      context.bench = true;
    } else if (std::strcmp(argv[i], "--bench-only") == 0) {
      context.bench = context.bench_only = true;
    } else if (std::strcmp(argv[i], "--rivals") == 0 && i + 1 < argc) {
      rivals = argv[++i];
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      context.only.emplace_back(argv[++i]);
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
    if (!context.bench_only)
      std::printf("%s: %d checks, %d failed\n", check.name, context.checks - done_before,
                  context.failures - failed_before);
    std::fflush(stdout);
  }
  if (context.bench && !rivals.empty()) time_rivals(context, rivals);
  if (context.receipt != nullptr) std::fclose(context.receipt);
  return context.failures == 0 ? 0 : 1;
}
