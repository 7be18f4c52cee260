#include "bench/serving_run.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "bench/live_line.h"
#include "bench/load_generator.h"
#include "text/text_prefix.h"

namespace winnow::bench {

namespace {

constexpr int64_t kMaxWarmupTokens = 32;

int io_threads(const ServingOptions& options) {
  if (options.io_threads > 0) return static_cast<int>(options.io_threads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 8);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool says_incremental(const json::Value& info) {
  const json::Value* flag = info.find("incremental_streaming_output");
  return flag != nullptr && flag->is_bool() && flag->as_bool();
}

// avg_spec_accept_length of the first scheduler's state; 0 where it is not said.
double accept_length(const json::Value& info) {
  const json::Value* states = info.find("internal_states");
  if (states == nullptr || !states->is_array() || states->as_array().empty()) return 0;
  const json::Value* length = states->as_array().front().find("avg_spec_accept_length");
  return length != nullptr && length->is_number() ? length->as_number() : 0;
}

PlannedRequest plan(const BackendFormat& format,
                    const PromptRow& row,
                    const RequestOptions& options) {
  return {.body = request_body(format, row, options),
          .due_s = 0,
          .prompt_len = row.prompt_len,
          .output_len = row.output_len};
}

// With the conversation's later turns: each sends all that was said before it.
PlannedRequest plan_conversation(const BackendFormat& format,
                                 const PromptRow& row,
                                 const RequestOptions& options) {
  PlannedRequest request = plan(format, row, options);
  if (row.later_turns.empty()) return request;
  int64_t prompt_len = row.prompt_len;
  for (const int64_t more : row.later_lens) {
    request.later_prompt_lens.push_back(prompt_len += row.output_len + more);
  }
  const auto say = [](json::Array& said, const char* role, std::string text) {
    said.push_back(json::Object{{"role", role}, {"content", std::move(text)}});
  };
  json::Array said;
  say(said, "user", row.text);
  request.next_body = [&format, &options, say, row = PromptRow(row), said,
                       turn = size_t{0}](const std::string& answer) mutable {
    say(said, "assistant", answer);
    say(said, "user", row.later_turns[turn++]);
    row.messages = said;
    return request_body(format, row, options);
  };
  return request;
}

}  // namespace

std::vector<double> poisson_arrivals(NumpyRandom& random, double rate, size_t count) {
  std::vector<double> arrivals(count, 0);
  for (size_t i = 1; i < count && rate > 0; ++i) {
    arrivals[i] = arrivals[i - 1] + random.exponential(1 / rate);
  }
  return arrivals;
}

ServingBench::ServingBench(ServingOptions options, std::function<void(std::string)> say)
    : options_(std::move(options)),
      say_(std::move(say)),
      probe_(options_.url, options_.headers),
      client_(
          {.url = options_.url, .headers = options_.headers, .io_threads = io_threads(options_)}) {
  probe_.wait_ready(options_.ready_timeout_s);
  if (options_.model.empty()) options_.model = probe_.model_name();
  options_.request.model =
      options_.served_model_name.empty() ? options_.model : options_.served_model_name;
  std::string folder = options_.tokenizer;
  if (folder.empty() && options_.format->says_its_state) folder = probe_.tokenizer_path();
  if (folder.empty()) folder = options_.model;
  try {
    tokenizer_ = text::load_tokenizer(folder);
    num_prefix_tokens_ = static_cast<int64_t>(text::load_text_prefix(folder, *tokenizer_).size());
  } catch (const Error& error) {
    throw_error("{}; --tokenizer DIR names the served model's tokenizer", error.what());
  }
  if (options_.format->says_its_state) incremental_text_ = says_incremental(probe_.server_info());
}

ServingResult ServingBench::run(int64_t run_idx) {
  DatasetRandom random(static_cast<uint32_t>(options_.seed + run_idx));
  const std::vector<PromptRow> rows =
      load_dataset(options_.dataset, {.tokenizer = *tokenizer_,
                                      .num_prefix_tokens = num_prefix_tokens_,
                                      .random = random,
                                      .note = say_});
  int64_t num_input = 0;
  int64_t num_output = 0;
  for (const PromptRow& row : rows) {
    num_input += row.prompt_len;
    num_output += row.output_len;
  }
  say_(fmt::format("#Input tokens: {}", num_input));
  say_(fmt::format("#Output tokens: {}", num_output));
  warm_up(rows);
  if (options_.flush_cache) probe_.flush_cache(*options_.format, options_.flush_timeout_s);
  ServingResult result;
  const double cpu_before = cpu_seconds();
  result.records = measure(rows, random.numpy);
  result.client_cpu_s = cpu_seconds() - cpu_before;
  result.num_interrupted = static_cast<int64_t>(
      std::erase_if(result.records, [](const RequestRecord& r) { return r.interrupted; }));
  if (options_.format->says_its_state) result.server_info = probe_.server_info();
  count_again(result.records);
  result.metrics = compute_metrics(result.records, options_.slos);
  if (const double length = accept_length(result.server_info); length > 0) {
    result.metrics.accept_length = length;
  }
  return result;
}

void ServingBench::warm_up(const std::vector<PromptRow>& rows) {
  if (options_.warmup_requests <= 0) return;
  say_(fmt::format("Warming up with {} requests", options_.warmup_requests));
  PromptRow row = rows.front();
  row.output_len = std::min(row.output_len, kMaxWarmupTokens);
  std::vector<PlannedRequest> requests(static_cast<size_t>(options_.warmup_requests),
                                       plan(*options_.format, row, options_.request));
  const auto records =
      run_load(client_, std::move(requests),
               {.target = std::string(options_.format->target()),
                .events = {.kind = options_.format->kind, .incremental_text = incremental_text_},
                .max_concurrency = options_.max_concurrency,
                .stop = options_.stop});
  if (options_.stop != nullptr && options_.stop->load()) {
    throw_error("interrupted before the measurement began");
  }
  const bool any = std::any_of(records.begin(), records.end(),
                               [](const RequestRecord& record) { return record.ok(); });
  if (!any) throw_error("every warm-up request failed: {}", records.front().error);
}

std::vector<RequestRecord> ServingBench::measure(const std::vector<PromptRow>& rows,
                                                 NumpyRandom& random) {
  const std::vector<double> arrivals = poisson_arrivals(random, options_.request_rate, rows.size());
  std::vector<PlannedRequest> requests;
  requests.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    requests.push_back(plan_conversation(*options_.format, rows[i], options_.request));
    requests.back().due_s = options_.use_trace_timestamps ? rows[i].arrival_s : arrivals[i];
  }
  LiveLine line(options_.live);
  const auto start = std::chrono::steady_clock::now();
  LoadOptions load = {
      .target = std::string(options_.format->target()),
      .events = {.kind = options_.format->kind, .incremental_text = incremental_text_},
      .max_concurrency = options_.max_concurrency,
      .stop = options_.stop};
  if (line.shown()) {
    load.show = [&](const LoadProgress& p) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      line.show(fmt::format("{} of {} done, {} running, {} failed, {:.1f} tok/s, {:.0f} s",
                            p.done.load(), rows.size(), p.started - p.done, p.failed.load(),
                            static_cast<double>(p.tokens.load()) / std::max(elapsed.count(), 1e-9),
                            elapsed.count()));
    };
  }
  return run_load(client_, std::move(requests), load);
}

void ServingBench::count_again(std::vector<RequestRecord>& records) const {
  for (RequestRecord& record : records) {
    if (!record.ok()) continue;
    record.num_retokenized =
        static_cast<int64_t>(tokenizer_->encode(record.text, text::ControlTokens::kParse).size());
  }
}

}  // namespace winnow::bench
