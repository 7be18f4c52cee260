// What is printed: fifty columns, JSON keys, grids, pictures.
#include <gtest/gtest.h>

#include <sstream>

#include "bench/send_one.h"
#include "bench/serving_plot.h"
#include "bench/serving_report.h"
#include "bench/svg_chart.h"

namespace winnow::bench {
namespace {

// Ten tokens 100 ms apart.
ServingResult ten_tokens() {
  ServingResult result;
  RequestRecord r;
  for (int64_t i = 1; i <= 10; ++i) r.events.push_back({i * 100'000'000, 1});
  r.end_ns = r.last_event_ns = 1'000'000'000;
  r.prompt_len = r.served_prompt_tokens = 20;
  r.output_len = r.completion_tokens = r.num_retokenized = 10;
  r.cached_tokens = 4;
  result.records = {r};
  result.metrics = compute_metrics(result.records, {.ttft_ms = 200, .tpot_ms = {}, .e2el_ms = {}});
  return result;
}

ServingOptions options() {
  ServingOptions options;
  options.format = find_backend("winnow");
  options.dataset.name = "random";
  options.dataset.num_prompts = 1;
  options.max_concurrency = 16;
  options.slos.ttft_ms = 200;
  return options;
}

TEST(ServingReport, LinesInTheReportsOrder) {
  const ServingResult result = ten_tokens();
  const std::string text = serving_report(options(), result.metrics, {});
  const std::string start =
      "\n============ Serving Benchmark Result ============\n"
      "Backend:                                 winnow    \n"
      "Traffic request rate:                    inf       \n"
      "Max request concurrency:                 16        \n"
      "Successful requests:                     1         \n"
      "Benchmark duration (s):                  1.00      \n"
      "Total input tokens:                      20        \n"
      "Total input text tokens:                 20        \n"
      "Total generated tokens:                  10        \n"
      "Total generated tokens (retokenized):    10        \n"
      "Request throughput (req/s):              1.00      \n"
      "Input token throughput (tok/s):          20.00     \n"
      "Output token throughput (tok/s):         10.00     \n"
      "Peak output token throughput (tok/s):    9.00      \n"
      "Peak concurrent requests:                1         \n"
      "Total token throughput (tok/s):          30.00     \n"
      "Concurrency:                             1.00      \n"
      "---------------------Goodput----------------------\n";
  EXPECT_EQ(text.substr(0, start.size()), start);
  std::vector<std::string> sections;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("-")) sections.push_back(line);
  }
  EXPECT_EQ(sections,
            (std::vector<std::string>{"---------------------Goodput----------------------",
                                      "----------------End-to-End Latency----------------",
                                      "---------------Time to First Token----------------",
                                      "-----Time per Output Token (excl. 1st token)------",
                                      "---------------Inter-Token Latency----------------",
                                      "--------------Beyond SGLang's report--------------"}));
  EXPECT_NE(text.find("P95 ITL (ms):                            100.00    \n"), std::string::npos);
  EXPECT_EQ(text.find("P95 TTFT"), std::string::npos);
  EXPECT_NE(serving_report(options(), result.metrics, {.all_percentiles = true}).find("P95 TTFT"),
            std::string::npos);
  EXPECT_NE(text.find("Cached share of input (%):               20.00     \n"), std::string::npos);
}

TEST(ServingReport, RatesAndLimits) {
  ServingOptions o = options();
  o.request_rate = 8;
  o.max_concurrency = 0;
  const std::string text = serving_report(o, ten_tokens().metrics, {});
  EXPECT_NE(text.find("Traffic request rate:                    8.0       \n"), std::string::npos);
  EXPECT_NE(text.find("Max request concurrency:                 not set   \n"), std::string::npos);
}

TEST(ServingJson, KeysAndValues) {
  const json::Value v = serving_json(options(), ten_tokens(), {.details = true, .tag = "t"});
  for (const char* key : {"tag",
                          "backend",
                          "dataset_name",
                          "request_rate",
                          "max_concurrency",
                          "sharegpt_output_len",
                          "random_input_len",
                          "random_output_len",
                          "random_range_ratio",
                          "server_info",
                          "duration",
                          "completed",
                          "total_input_tokens",
                          "total_input_text_tokens",
                          "total_input_vision_tokens",
                          "total_output_tokens",
                          "total_output_tokens_retokenized",
                          "request_throughput",
                          "input_throughput",
                          "output_throughput",
                          "total_throughput",
                          "concurrency",
                          "accept_length",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "failed",
                          "first_error",
                          "max_itl_ms",
                          "cached_share",
                          "peak_concurrent_requests",
                          "steady",
                          "request_goodput",
                          "input_lens",
                          "output_lens",
                          "ttfts",
                          "itls",
                          "generated_texts",
                          "errors"}) {
    EXPECT_NE(v.find(key), nullptr) << key;
  }
  for (const char* statistic : {"mean", "median", "std", "p90", "p95", "p99"}) {
    for (const char* name : {"e2e_latency", "ttft", "tpot", "itl"}) {
      EXPECT_NE(v.find(fmt::format("{}_{}_ms", statistic, name)), nullptr);
    }
  }
  EXPECT_EQ(v.find("itls")->as_array()[0].as_array().size(), 9u);
  EXPECT_EQ(v.find("cached_share")->as_number(), 0.2);
  EXPECT_TRUE(json::parse(json::dump(v)).ok());
  EXPECT_EQ(default_output_file(options(), 3, 9), "winnow_0309_1_1024_1024.jsonl");
}

TEST(ServingJson, ARunThatFailed) {
  ServingResult result;
  result.records.resize(1);
  result.records[0].error = "HTTP 503: full";
  result.metrics = compute_metrics(result.records);
  const json::Value v = serving_json(options(), result, {});
  EXPECT_EQ(v.find("first_error")->as_string(), "HTTP 503: full");
  EXPECT_TRUE(json::parse(json::dump(v)).ok());  // no NaN in it
  EXPECT_EQ(serving_report(options(), result.metrics, {}).find("nan"), std::string::npos);
}

TEST(Plots, AreWholeDocuments) {
  const ServingResult result = ten_tokens();
  for (const std::string& svg :
       {run_plot("a < b", result.records), run_plot("nothing", {}),
        sweep_plot("sweep", {{"1", result.metrics}, {"2", compute_metrics({})}})}) {
    EXPECT_TRUE(svg.starts_with("<svg "));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
  EXPECT_NE(run_plot("a < b", result.records).find("a &lt; b"), std::string::npos);
}

TEST(Plots, Ticks) {
  EXPECT_EQ(axis_ticks(10), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_ticks(0), axis_ticks(1));
  EXPECT_GE(axis_ticks(733).back(), 733);
  EXPECT_LE(axis_ticks(1e-9).size(), 7u);
}

TEST(SweepTable, ARowARun) {
  const std::string table =
      sweep_table("concurrency", {{"1", ten_tokens().metrics}, {"16", ten_tokens().metrics}});
  EXPECT_NE(table.find("concurrency"), std::string::npos);
  EXPECT_NE(table.find("tok/s a user"), std::string::npos);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  const std::string none = sweep_table("concurrency", {{"1", compute_metrics({}, {})}});
  EXPECT_EQ(none.find("nan"), std::string::npos) << none;
}

// serving.md section 0: 512 tokens in 8.062 s.
TEST(SendOne, TableOfTheReferenceReport) {
  const json::Value item =
      json::parse(R"({"meta_info":{"e2e_latency":8.062,"completion_tokens":512}})").value();
  const SendOneResult result = read_send_one(item, 9);
  EXPECT_EQ(send_one_table(result),
            "+-------------+--------+------------+-----------------+\n"
            "| Latency (s) | Tokens | Acc Length | Speed (token/s) |\n"
            "+-------------+--------+------------+-----------------+\n"
            "|    8.062    |  512   |   1.000    |      63.51      |\n"
            "+-------------+--------+------------+-----------------+\n");
}

TEST(SendOne, AcceptLengthAndClientTime) {
  const json::Value item =
      json::parse(R"({"meta_info":{"completion_tokens":30,"spec_verify_ct":12}})").value();
  const SendOneResult result = read_send_one(item, 2);
  EXPECT_EQ(result.accept_length, 2.5);
  EXPECT_EQ(result.latency_s, 2);
  EXPECT_EQ(result.tokens_per_s, 15);
}

TEST(SendOne, Bodies) {
  SendOneOptions options;
  options.batch_size = 2;
  options.different_prompts = true;
  const json::Value body = send_one_body(options);
  EXPECT_TRUE(body.find("text")->as_array()[1].as_string().starts_with(
      "Test case 2: Human: Give me a fully functional FastAPI server."));
  const json::Value& sampling = *body.find("sampling_params");
  EXPECT_EQ(sampling.find("max_new_tokens")->as_integer(), 512);
  EXPECT_EQ(sampling.find("stop")->as_array().size(), 4u);
  EXPECT_EQ(sampling.find("ignore_eos"), nullptr);
  options.json = true;
  options.batch_size = 1;
  const json::Value asks = send_one_body(options);
  EXPECT_EQ(asks.find("sampling_params")->find("json_schema")->as_string(), "$$ANY$$");
}

}  // namespace
}  // namespace winnow::bench
