#include "app/bench_offline.h"

#include <fmt/format.h>
#include <algorithm>

#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "app/loaded_model.h"
#include "app/options.h"
#include "app/weight_traffic.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/table.h"
#include "base/trace.h"
#include "model/cache_views.h"
#include "model/decoder.h"
#include "model/step_rows.h"

namespace winnow::app {

namespace {

struct BenchOptions {
  ServeOptions model;
  int64_t prefill_rows = 512;
  std::vector<int64_t> contexts = {2048, 8192, 32768};
  int64_t decode_steps = 12;
  bool json = false;
};

struct Measurement {
  std::string name;
  int64_t context = 0;
  int64_t rows = 0;
  double milliseconds = 0;  // of one step, median
  double tokens_per_second = 0;
  // Decode: what the memory gave between the steps, median; bytes of weights a second over it,
  // median of the steps.
  double read_bytes_per_second = 0;
  double weight_share = 0;
};

class OfflineBench {
 public:
  OfflineBench(const BenchOptions& options, LoadedModel& loaded)
      : options_(options),
        loaded_(loaded),
        page_size_(static_cast<int32_t>(options.model.page_size)),
        prefill_rows_(static_cast<int32_t>(options.prefill_rows)),
        max_context_(
            static_cast<int32_t>(std::max(options.prefill_rows, longest(options.contexts))) +
            page_size_),
        plan_(model::plan_cache(loaded.config, loaded.numerics, page_size_)),
        decoder_(loaded.config,
                 loaded.numerics,
                 loaded.weights,
                 plan_,
                 {.max_rows = prefill_rows_, .max_logit_rows = 1, .max_context = max_context_},
                 *loaded.backend),
        storage_(plan_,
                 static_cast<int32_t>(layout::ceil_div(max_context_, page_size_)),
                 [&](int64_t bytes) { return loaded.backend->allocate(bytes); }),
        rows_(prefill_rows_, 1, max_context_, page_size_, *loaded.backend),
        bandwidth_(loaded.backend->host_threads()),
        tokens_(max_context_),
        pages_(storage_.num_pages()) {
    std::mt19937 random(1);
    for (int32_t& id : tokens_) id = static_cast<int32_t>(random() % loaded.config.vocab_size);
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  Measurement prefill() {
    run(0, prefill_rows_);  // fills the pages that fill_context() copies, and warms up
    std::vector<double> all(3);
    for (double& seconds : all) seconds = seconds_of([&] { run(0, prefill_rows_); });
    const double step = median(all);
    return {.name = "prefill",
            .context = prefill_rows_,
            .rows = prefill_rows_,
            .milliseconds = step * 1e3,
            .tokens_per_second = prefill_rows_ / step};
  }

  // Each step is held against a pass over memory before it, so that both see the same machine.
  Measurement decode(int32_t context) {
    fill_context(context);
    run(context - 1, 1);
    const auto weight_bytes =
        static_cast<double>(weight_bytes_per_token(loaded_.config, loaded_.weights));
    std::vector<double> seconds, bandwidths, shares;
    for (int64_t i = 0; i < options_.decode_steps; ++i) {
      bandwidths.push_back(bandwidth_.measure());
      seconds.push_back(seconds_of([&] { run(context - 1, 1); }));
      shares.push_back(weight_bytes / seconds.back() / bandwidths.back());
    }
    const double step = median(seconds);
    return {.name = "decode",
            .context = context,
            .rows = 1,
            .milliseconds = step * 1e3,
            .tokens_per_second = 1 / step,
            .read_bytes_per_second = median(bandwidths),
            .weight_share = median(shares)};
  }

 private:
  static int64_t longest(const std::vector<int64_t>& contexts) {
    return *std::max_element(contexts.begin(), contexts.end());
  }

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
    const int32_t filled = std::max(1, prefill_rows_ / page_size_);
    const auto last = static_cast<int32_t>(layout::ceil_div(context, page_size_));
    for (int32_t page = filled; page < last; ++page) {
      model::copy_page_tokens(*loaded_.backend, storage_, page % filled, page, page_size_);
    }
  }

  template <typename Step>
  double seconds_of(const Step& step) {
    const int64_t begin = clock_.now_ns();
    step();
    return static_cast<double>(clock_.now_ns() - begin) * 1e-9;
  }

  static double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<int64_t>(values.size()) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  const BenchOptions& options_;
  LoadedModel& loaded_;
  const int32_t page_size_;
  const int32_t prefill_rows_;
  const int32_t max_context_;
  const kv::CachePlan plan_;
  model::Decoder decoder_;
  kv::KvStorage storage_;
  model::StepRows rows_;
  ReadBandwidth bandwidth_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> pages_;
  SteadyClock clock_;
};

void print_table(const std::vector<Measurement>& results) {
  Table table({"step", ">context", ">rows", ">ms", ">tokens/s", ">read bandwidth, GB/s",
               ">weights read, % of it"});
  for (const Measurement& m : results) {
    table.add_row({m.name, with_thousands(m.context), with_thousands(m.rows),
                   fmt::format("{:.2f}", m.milliseconds),
                   fmt::format("{:.2f}", m.tokens_per_second),
                   m.weight_share > 0 ? fmt::format("{:.1f}", m.read_bytes_per_second * 1e-9) : "",
                   m.weight_share > 0 ? fmt::format("{:.0f}", 100 * m.weight_share) : ""});
  }
  fmt::print("{}", table.to_text());
}

void print_json(const std::vector<Measurement>& results) {
  json::Array rows;
  for (const Measurement& m : results) {
    rows.push_back(json::Object{{"step", m.name},
                                {"context", m.context},
                                {"rows", m.rows},
                                {"milliseconds", m.milliseconds},
                                {"tokens_per_second", m.tokens_per_second},
                                {"read_bytes_per_second", m.read_bytes_per_second},
                                {"weight_share_of_bandwidth", m.weight_share}});
  }
  fmt::print("{}\n", json::dump(json::Object{{"results", std::move(rows)}}));
}

void run_bench(const BenchOptions& options, OptionTable& table) {
  table.apply();
  log::setup(options.model.log_level);
  check(options.model);
  if (!options.model.trace.empty()) trace::start(options.model.trace);
  auto loaded = load_model(options.model);
  OfflineBench bench(options, *loaded);
  std::vector<Measurement> results = {bench.prefill()};
  for (const int64_t context : options.contexts) {
    results.push_back(bench.decode(static_cast<int32_t>(context)));
  }
  options.json ? print_json(results) : print_table(results);
  if (!options.model.trace.empty()) trace::stop();
}

void add_bench_rows(OptionTable& t, BenchOptions& o) {
  t.section("Bench");
  t.integer("--prefill-rows", o.prefill_rows, 64, 65536, "Rows of the prefill step.");
  t.integers("--contexts", o.contexts, 64, 1 << 20, "Decode one token at these lengths.");
  t.integer("--decode-steps", o.decode_steps, 1, 10000, "Repeats of each decode step.");
  t.toggle("--json", o.json, "For scripts.");
}

}  // namespace

Command bench_offline_command() {
  struct State {
    BenchOptions options;
    OptionTable table = checkpoint_option_table(options.model);
  };
  auto state = std::make_shared<State>();
  add_bench_rows(state->table, state->options);
  return make_command("offline", "Prefill and decode steps without a server", state,
                      [state] { run_bench(state->options, state->table); });
}

}  // namespace winnow::app
