#include "app/score.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>

#include "app/loaded_model.h"
#include "app/options.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/trace.h"
#include "model/decoder.h"
#include "model/safetensors_writer.h"
#include "model/step_rows.h"

namespace winnow::app {

namespace {

struct ScoreOptions {
  ServeOptions model;
  std::string input;
  std::string output;
  std::vector<std::string> dump;
  int64_t chunk = 512;

  bool dumps(const std::string& what) const {
    return std::find(dump.begin(), dump.end(), what) != dump.end();
  }
};

using Case = std::vector<int32_t>;

Case parse_case(const std::string& line,
                const std::string& where,
                const model::ModelConfig& config) {
  const int32_t vocab_size = config.vocab_size;
  auto parsed = json::parse(line);
  if (!parsed.ok()) throw_error("{}: {}", where, parsed.status().message);
  const json::Value* ids = parsed.value().find("input_ids");
  if (ids == nullptr || !ids->is_array() || ids->as_array().empty()) {
    throw_error("{}: input_ids must be a list of at least one token id", where);
  }
  Case result;
  for (const json::Value& id : ids->as_array()) {
    if (!id.is_integer() || id.as_integer() < 0 || id.as_integer() >= vocab_size) {
      throw_error("{}: input_ids: {} is no id below {}", where, json::dump(id), vocab_size);
    }
    result.push_back(static_cast<int32_t>(id.as_integer()));
  }
  if (std::ssize(result) > config.max_position_embeddings) {
    throw_error("{}: {} ids, but the model has {} positions", where, result.size(),
                config.max_position_embeddings);
  }
  return result;
}

std::vector<Case> read_cases(const std::string& path, const model::ModelConfig& config) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) throw_error("{}: cannot be read", path);
  std::vector<Case> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    cases.push_back(parse_case(line, fmt::format("{}:{}", path, number), config));
  }
  if (cases.empty()) throw_error("{}: no cases", path);
  return cases;
}

// Everything that the decoder shows of one case, as the output file wants it.
class CaseRecorder final : public model::StepObserver {
 public:
  CaseRecorder(const model::ModelConfig& config, int64_t num_tokens)
      : config_(config),
        num_tokens_(num_tokens),
        hidden((config.num_hidden_layers + 1) * num_tokens * config.hidden_size),
        topk(config.num_hidden_layers) {}

  void begin_chunk(int64_t start) { start_ = start; }

  void on_hidden(int32_t idx, std::span<const float> rows) override {
    std::copy(rows.begin(), rows.end(),
              hidden.begin() + (idx * num_tokens_ + start_) * config_.hidden_size);
  }
  // The scored sequence owns pages 0, 1, 2, ...: a slot is a position.
  void on_topk(int32_t layer, std::span<const int32_t> slots) override {
    topk[layer].insert(topk[layer].end(), slots.begin(), slots.end());
  }

 private:
  const model::ModelConfig& config_;
  const int64_t num_tokens_;
  int64_t start_ = 0;

 public:
  std::vector<float> hidden;               // [layers + 1, num_tokens, hidden_size]
  std::vector<std::vector<int32_t>> topk;  // [layers][num_tokens, index_topk], empty = no indexer
};

class Scorer {
 public:
  Scorer(const ScoreOptions& options, LoadedModel& loaded, int32_t max_tokens)
      : options_(options),
        loaded_(loaded),
        page_size_(static_cast<int32_t>(options.model.page_size)),
        plan_(model::plan_cache(loaded.config, loaded.numerics, page_size_)),
        limits_{.max_rows = std::min(static_cast<int32_t>(options.chunk), max_tokens),
                .max_logit_rows = std::min(64, max_tokens),
                .max_context = max_tokens},
        decoder_(loaded.config, loaded.numerics, loaded.weights, plan_, limits_, *loaded.backend),
        storage_(plan_,
                 static_cast<int32_t>(layout::ceil_div(max_tokens, page_size_)),
                 [&](int64_t bytes) { return loaded.backend->allocate(bytes); }),
        rows_(limits_.max_rows, 1, max_tokens, page_size_, *loaded.backend),
        pages_(storage_.num_pages()) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  void run(const Case& ids, int64_t number, model::SafetensorsWriter& writer) {
    const auto num_tokens = static_cast<int32_t>(ids.size());
    const int32_t vocab = loaded_.config.vocab_size;
    CaseRecorder recorder(loaded_.config, num_tokens);
    std::vector<float> logits(int64_t{num_tokens} * vocab);
    for (int32_t start = 0; start < num_tokens; start += limits_.max_rows) {
      const int32_t count = std::min(limits_.max_rows, num_tokens - start);
      recorder.begin_chunk(start);
      rows_.clear();
      rows_.add({.tokens = ids, .start = start, .num_rows = count, .pages = pages_});
      decoder_.forward(rows_.commit(), storage_, options_.dump.empty() ? nullptr : &recorder);
      read_logits(count, logits.data() + int64_t{start} * vocab);
    }
    const std::string prefix = fmt::format("case{}.", number);
    writer.add(prefix + "logits", DType::kF32, {num_tokens, vocab}, logits.data());
    if (options_.dumps("hidden")) {
      writer.add(prefix + "hidden", DType::kF32,
                 {loaded_.config.num_hidden_layers + 1, num_tokens, loaded_.config.hidden_size},
                 recorder.hidden.data());
    }
    for (size_t layer = 0; options_.dumps("topk") && layer < recorder.topk.size(); ++layer) {
      if (recorder.topk[layer].empty()) continue;
      writer.add(fmt::format("{}topk.layer{}", prefix, layer), DType::kI32,
                 {num_tokens, loaded_.config.index_topk}, recorder.topk[layer].data());
    }
  }

 private:
  void read_logits(int32_t count, float* out) {
    const int32_t vocab = loaded_.config.vocab_size;
    std::vector<int32_t> row_idx;
    for (int32_t first = 0; first < count; first += limits_.max_logit_rows) {
      row_idx.resize(std::min(limits_.max_logit_rows, count - first));
      std::iota(row_idx.begin(), row_idx.end(), first);
      const auto n = static_cast<int32_t>(row_idx.size());
      const float* device = decoder_.logits(rows_.commit_indices(row_idx), n);
      loaded_.backend->download(out + int64_t{first} * vocab, device, int64_t{n} * vocab * 4);
    }
  }

  const ScoreOptions& options_;
  LoadedModel& loaded_;
  const int32_t page_size_;
  const kv::CachePlan plan_;
  const model::DecoderLimits limits_;
  model::Decoder decoder_;
  kv::KvStorage storage_;
  model::StepRows rows_;
  std::vector<int32_t> pages_;
};

void run_score(const ScoreOptions& options, OptionTable& table) {
  table.apply();
  log::setup(options.model.log_level);
  check(options.model);
  if (options.input.empty()) throw_error("--input is required");
  if (options.output.empty()) throw_error("--output is required");
  std::error_code ignored;
  if (std::filesystem::equivalent(options.input, options.output, ignored)) {
    throw_error("--output {}: is the input", options.output);
  }
  // What is wrong with the small files shows before the weights are read.
  const std::vector<Case> cases =
      read_cases(options.input, model::load_config(options.model.model_path));
  model::SafetensorsWriter writer(options.output);
  if (!options.model.trace.empty()) trace::start(options.model.trace);
  auto loaded = load_model(options.model);
  size_t max_tokens = 0;
  for (const Case& ids : cases) max_tokens = std::max(max_tokens, ids.size());
  Scorer scorer(options, *loaded, static_cast<int32_t>(max_tokens));
  for (size_t n = 0; n < cases.size(); ++n) {
    scorer.run(cases[n], static_cast<int64_t>(n), writer);
  }
  writer.finish();
  if (!options.model.trace.empty()) trace::stop();
}

void add_score_rows(OptionTable& t, ScoreOptions& o) {
  t.section("Score");
  t.text("--input", o.input, "FILE", "JSONL: one {\"input_ids\": [...]} a case.");
  t.text("--output", o.output, "FILE", "safetensors file to write.");
  t.words("--dump", o.dump, {"hidden", "topk"}, "What to write besides the logits.");
  t.integer("--chunk", o.chunk, 1, 65536, "Rows of one step.");
}

}  // namespace

Command score_command() {
  struct State {
    ScoreOptions options;
    OptionTable table = checkpoint_option_table(options.model);
  };
  auto state = std::make_shared<State>();
  add_score_rows(state->table, state->options);
  return make_command("score", "Write the logits of given token ids", state,
                      [state] { run_score(state->options, state->table); });
}

}  // namespace winnow::app
