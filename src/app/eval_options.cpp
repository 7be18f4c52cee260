#include "app/eval_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace winnow::app {
namespace {

constexpr int64_t kMany = INT32_MAX;

// Which evals have a row: all where none are named.
class Rows {
 public:
  Rows(OptionTable& table, std::string_view eval_name) : table_(table), eval_name_(eval_name) {}
  OptionTable* of(std::initializer_list<std::string_view> evals) {
    const bool wanted =
        eval_name_.empty() || std::find(evals.begin(), evals.end(), eval_name_) != evals.end();
    return wanted ? &table_ : nullptr;
  }

 private:
  OptionTable& table_;
  std::string_view eval_name_;
};

void add_server_rows(OptionTable& t, EvalOptions& o) {
  t.section("Server");
  t.text("--base-url", o.base_url, "URL", "The server; http://HOST:PORT where none is given.");
  t.text("--host", o.host, "ADDRESS", "Its host, with or without http://.");
  t.integer("--port", o.port, 1, 65535, "Its port.");
  t.text("--model", o.model, "NAME", "Model to ask for; the first that the server names.");
}

void add_request_rows(OptionTable& t, EvalOptions& o) {
  t.section("Requests");
  t.choice("--api", o.api, {"generate", "completion", "chat"},
           "Form of the requests: plain text to /generate or /v1/completions, or a user message.");
  t.integer("--num-threads --parallel", o.num_threads, 1, 65536,
            "Requests in flight of one repeat.");
  t.integer("--max-tokens --max-new-tokens", o.max_tokens, 1, kMany, "Tokens of one answer.");
  t.number("--temperature", o.temperature, 0, 1000, "0: greedy.");
  t.number("--top-p", o.top_p, 0, 1, "Nucleus sampling.");
  t.integer("--top-k", o.top_k, -1, kMany, "0: not sent.");
  t.number("--min-p", o.min_p, -1, 1, "-1: not sent.");
  t.integer("--seed", o.seed, -1, kMany, "Repeat r sends this + r; -1: not sent.");
  t.choice("--thinking-mode", o.thinking_mode, {"", "glm-45", "deepseek-v3", "kimi-k2", "qwen-3"},
           "Asks the chat template to think, as this family wants to be asked.");
  t.text("--chat-template-kwargs", o.chat_template_kwargs, "JSON",
         "For the chat template; wins over --thinking-mode.");
  t.text("--reasoning-effort", o.reasoning_effort, "NAME", "Sent as it is.");
  t.number("--timeout", o.timeout, 0.001, 1e7, "Seconds that one answer may take.");
  t.integer("--max-retries", o.max_retries, 0, 1000,
            "Of a request that found no answer; a request that is refused is not repeated.");
}

void add_question_rows(OptionTable& table, EvalOptions& o, const std::string& eval_name) {
  Rows rows(table, eval_name);
  table.section("Questions");
  if (auto* t = rows.of({"gsm8k", "gpqa", "mmlu", "math", "aime", "humaneval", "longbench_v2"})) {
    t->text("--data-path --dataset-path --gsm8k-data-path", o.data_path, "FILE",
            "The data set: .csv, .jsonl or .json.");
    t->integer("--num-examples --num-questions", o.num_examples, 0, kMany, "0: all.");
  }
  if (auto* t = rows.of({"gsm8k"})) {
    t->integer("--num-shots", o.num_shots, 0, kMany, "Worked examples in front of each question.");
  }
  if (auto* t = rows.of({"gsm8k", "aime"})) {
    t->toggle("--parity", o.parity, "Asks and scores as the old script does, faults included.");
  }
  if (auto* t = rows.of({"gpqa", "mmlu"})) {
    t->toggle("--lenient", o.lenient,
              "Finds the letter as a reader would, not only in \"Answer: X\".");
  }
  if (auto* t = rows.of({"longbench_v2"})) {
    t->text("--categories", o.categories, "NAMES", "Domains, commas between them; all.");
    t->integer("--min-context-length", o.min_context_length, 0, INT64_MAX, "Characters.");
    t->integer("--max-context-length", o.max_context_length, 0, INT64_MAX, "Characters; 0: any.");
  }
  if (auto* t = rows.of({"humaneval"})) {
    t->toggle("--allow-code-execution", o.allow_code_execution,
              "Yes, run the programs that the model writes on this machine.");
  }
  if (auto* t = rows.of({"needle"})) {
    t->integers("--lengths", o.lengths, 16, INT64_C(1) << 24,
                "Lengths of the text, in words or tokens.");
    t->integers("--depths", o.depths, 0, 100, "Percent of the text before the needle.");
    t->integer("--per-cell", o.per_cell, 1, 10000, "Questions of each length and depth.");
    t->integer("--num-distractors", o.num_distractors, 0, 15, "Needles of other names.");
    t->integer("--text-seed", o.text_seed, 0, kMany, "Seed of texts and needles.");
    t->text("--tokenizer-path", o.tokenizer_path, "DIR",
            "Counts --lengths in tokens of this checkpoint's tokenizer instead of words.");
  }
}

void add_run_rows(OptionTable& table, EvalOptions& o, const std::string& eval_name) {
  table.section("Run");
  table.integer("--repeat", o.repeat, 1, 10000, "Asks everything so often, all at once.");
  table.text("--output", o.output, "FILE",
             "Samples, one JSON a line; a page and a summary are written beside it. A file in "
             "eval_results/ where none is given.");
  table.text("--resume", o.resume, "FILE", "Goes on with the samples file of an interrupted run.");
  if (auto* t = Rows(table, eval_name).of({"gsm8k"})) {
    t->text("--result-file", o.result_file, "FILE", "Appends the old script's line.");
    t->text("--backend", o.backend, "NAME", "Only named in --result-file.");
    t->text("--device", o.device, "NAME", "Accepted; the server decides.");
  }
  table.toggle("--json", o.json, "One JSON object on stdout and nothing else.");
  table.text("--config", o.config, "FILE",
             "JSON object with values for any of these options; the command line wins.");
}

}  // namespace

const std::vector<std::string>& eval_names() {
  static const std::vector<std::string> kNames = {"gsm8k", "gpqa",      "mmlu",         "math",
                                                  "aime",  "humaneval", "longbench_v2", "needle"};
  return kNames;
}

EvalOptions default_eval_options(const std::string& eval_name) {
  EvalOptions options;
  options.eval_name = eval_name;
  if (eval_name == "gsm8k") {
    options.api = "generate";
    options.num_threads = 64;
    options.max_tokens = 512;
    options.num_examples = 200;
  } else if (eval_name == "gpqa") {
    options.data_path = "gpqa_diamond.csv";
  } else if (eval_name == "mmlu") {
    options.data_path = "mmlu.csv";
  } else if (eval_name == "math") {
    options.data_path = "math_test.csv";
  } else if (eval_name == "aime") {
    options.data_path = "aime.jsonl";
  } else if (eval_name == "humaneval") {
    options.data_path = "HumanEval.jsonl";
    options.repeat = 5;
  } else if (eval_name == "longbench_v2") {
    options.data_path = "longbench_v2.json";
  } else if (eval_name == "needle") {
    options.max_tokens = 1024;
    options.num_threads = 16;
  }
  return options;
}

OptionTable eval_option_table(EvalOptions& options, const std::string& eval_name) {
  OptionTable table;
  add_server_rows(table, options);
  add_request_rows(table, options);
  add_question_rows(table, options, eval_name);
  add_run_rows(table, options, eval_name);
  return table;
}

eval::RequestSettings request_settings(const EvalOptions& o) {
  eval::RequestSettings settings;
  settings.api = o.api == "generate"     ? eval::Api::kGenerate
                 : o.api == "completion" ? eval::Api::kCompletion
                                         : eval::Api::kChat;
  settings.model = o.model;
  settings.max_tokens = o.max_tokens;
  settings.temperature = o.temperature;
  settings.top_p = o.top_p;
  if (o.top_k != 0) settings.top_k = o.top_k;
  if (o.min_p >= 0) settings.min_p = o.min_p;
  if (o.seed >= 0) settings.seed = o.seed;
  settings.reasoning_effort = o.reasoning_effort;
  if (settings.api != eval::Api::kChat) {
    for (const auto& [flag, text] :
         {std::pair<const char*, const std::string&>{"--thinking-mode", o.thinking_mode},
          {"--chat-template-kwargs", o.chat_template_kwargs},
          {"--reasoning-effort", o.reasoning_effort}}) {
      if (!text.empty()) throw_error("{} {}: needs --api chat", flag, text);
    }
    settings.stop = {"Question", "Assistant:", "<|separator|>"};
    return settings;
  }
  if (!o.thinking_mode.empty()) {
    settings.chat_template_kwargs = eval::thinking_kwargs(o.thinking_mode);
  }
  if (!o.chat_template_kwargs.empty()) {
    const Result<json::Value> kwargs = json::parse(o.chat_template_kwargs);
    if (!kwargs.ok() || !kwargs.value().is_object()) {
      throw_error("--chat-template-kwargs {}: must be a JSON object", o.chat_template_kwargs);
    }
    settings.chat_template_kwargs = kwargs.value().as_object();
  }
  return settings;
}

}  // namespace winnow::app
