#include "app/bench_offline.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "app/loaded_model.h"
#include "app/weight_traffic.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/table.h"
#include "model/cache_views.h"
#include "model/decoder.h"
#include "model/step_rows.h"

namespace winnow::app {

namespace {

struct BenchOptions {
  ModelOptions model;
  int32_t prefill_rows = 512;
  std::vector<int32_t> contexts = {2048, 8192, 32768};
  int32_t decode_steps = 12;
  bool json = false;
};

struct Measurement {
  std::string name;
  int64_t context = 0;
  int64_t rows = 0;
  double milliseconds = 0;  // of one step, median
  double tokens_per_second = 0;
  double weight_share = 0;  // decode: bytes of weights a second / read bandwidth
};

class OfflineBench {
 public:
  OfflineBench(const BenchOptions& options, LoadedModel& loaded)
      : options_(options),
        loaded_(loaded),
        max_context_(*std::max_element(options.contexts.begin(), options.contexts.end()) + kPage),
        plan_(model::plan_cache(loaded.config, loaded.numerics, kPage)),
        decoder_(
            loaded.config,
            loaded.numerics,
            loaded.weights,
            plan_,
            {.max_rows = options.prefill_rows, .max_logit_rows = 1, .max_context = max_context_},
            *loaded.backend),
        storage_(plan_,
                 static_cast<int32_t>(layout::ceil_div(max_context_, kPage)),
                 [&](int64_t bytes) { return loaded.backend->allocate(bytes); }),
        rows_(options.prefill_rows, 1, max_context_, kPage, *loaded.backend),
        tokens_(max_context_),
        pages_(storage_.num_pages()) {
    std::mt19937 random(1);
    for (int32_t& id : tokens_) id = static_cast<int32_t>(random() % loaded.config.vocab_size);
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  Measurement prefill() {
    run(0, options_.prefill_rows);  // fills the pages that fill_context() copies, and warms up
    const double seconds = median_seconds(3, [&] { run(0, options_.prefill_rows); });
    return {"prefill",     options_.prefill_rows,           options_.prefill_rows,
            seconds * 1e3, options_.prefill_rows / seconds, 0};
  }

  Measurement decode(int32_t context, double bandwidth) {
    fill_context(context);
    run(context - 1, 1);
    const double seconds = median_seconds(options_.decode_steps, [&] { run(context - 1, 1); });
    const auto weight_bytes =
        static_cast<double>(weight_bytes_per_token(loaded_.config, loaded_.weights));
    return {"decode", context, 1, seconds * 1e3, 1 / seconds, weight_bytes / seconds / bandwidth};
  }

 private:
  static constexpr int32_t kPage = 64;

  void run(int32_t start, int32_t count) {
    rows_.clear();
    rows_.add({.tokens = tokens_, .start = start, .num_rows = count, .pages = pages_});
    decoder_.forward(rows_.commit(), storage_);
    const int32_t last = count - 1;
    decoder_.logits(rows_.commit_indices({&last, 1}), 1);
    loaded_.backend->synchronize();
  }

  // Computing 32k tokens takes minutes on a CPU; copies of prefilled pages read the same.
  void fill_context(int32_t context) {
    const int32_t filled = std::max(1, options_.prefill_rows / kPage);
    const auto last = static_cast<int32_t>(layout::ceil_div(context, kPage));
    for (int32_t page = filled; page < last; ++page) {
      model::copy_page_tokens(*loaded_.backend, storage_, page % filled, page, kPage);
    }
  }

  template <typename Step>
  double median_seconds(int repeats, const Step& step) {
    std::vector<double> seconds(repeats);
    for (double& s : seconds) {
      const int64_t begin = clock_.now_ns();
      step();
      s = static_cast<double>(clock_.now_ns() - begin) * 1e-9;
    }
    std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
    return seconds[repeats / 2];
  }

  const BenchOptions& options_;
  LoadedModel& loaded_;
  const int32_t max_context_;
  const kv::CachePlan plan_;
  model::Decoder decoder_;
  kv::KvStorage storage_;
  model::StepRows rows_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> pages_;
  SteadyClock clock_;
};

void print_table(const std::vector<Measurement>& results, double bandwidth) {
  Table table({"step", ">context", ">rows", ">ms", ">tokens/s", ">weights read, % of bandwidth"});
  for (const Measurement& m : results) {
    table.add_row({m.name, with_thousands(m.context), with_thousands(m.rows),
                   fmt::format("{:.2f}", m.milliseconds),
                   fmt::format("{:.2f}", m.tokens_per_second),
                   m.weight_share > 0 ? fmt::format("{:.0f}", 100 * m.weight_share) : ""});
  }
  fmt::print("read bandwidth {:.1f} GB/s\n{}", bandwidth * 1e-9, table.to_text());
}

void print_json(const std::vector<Measurement>& results, double bandwidth) {
  json::Array rows;
  for (const Measurement& m : results) {
    rows.push_back(json::Object{{"step", m.name},
                                {"context", m.context},
                                {"rows", m.rows},
                                {"milliseconds", m.milliseconds},
                                {"tokens_per_second", m.tokens_per_second},
                                {"weight_share_of_bandwidth", m.weight_share}});
  }
  fmt::print("{}\n", json::dump(json::Object{{"read_bytes_per_second", bandwidth},
                                             {"results", std::move(rows)}}));
}

void run_bench(const BenchOptions& options) {
  const int threads = options.model.threads > 0
                          ? options.model.threads
                          : static_cast<int>(std::thread::hardware_concurrency());
  const double bandwidth = measure_read_bandwidth(threads);
  auto loaded = load_model(options.model);
  OfflineBench bench(options, *loaded);
  std::vector<Measurement> results = {bench.prefill()};
  for (const int32_t context : options.contexts)
    results.push_back(bench.decode(context, bandwidth));
  options.json ? print_json(results, bandwidth) : print_table(results, bandwidth);
}

}  // namespace

void add_bench_offline(CLI::App& bench) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* offline = bench.add_subcommand("offline", "Prefill and decode steps without a server");
  add_model_options(*offline, options->model);
  offline->add_option("--prefill-rows", options->prefill_rows, "Rows of the prefill step")
      ->check(CLI::Range(64, 65536));
  offline->add_option("--contexts", options->contexts, "Decode one token at these lengths")
      ->delimiter(',')
      ->check(CLI::Range(64, 1 << 20));
  offline->add_option("--decode-steps", options->decode_steps, "Repeats of each decode step")
      ->check(CLI::Range(1, 10000));
  offline->add_flag("--json", options->json, "For scripts");
  offline->callback([options] { run_bench(*options); });
}

}  // namespace winnow::app
