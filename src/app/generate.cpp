#include "app/generate.h"

#include <algorithm>
#include <memory>

#include "app/compose.h"
#include "app/options.h"
#include "app/standard_streams.h"
#include "base/bounded_queue.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/trace.h"
#include "server/choice_output.h"
#include "server/server_config.h"
#include "text/text_prefix.h"

namespace winnow::app {
namespace {

struct GenerateOptions {
  ServeOptions serve;
  std::string prompt;
  std::string chat;
  std::string system;
  bool no_thinking = false;
  bool json = false;
  int64_t max_new_tokens = 256;
  double temperature = -1;  // -1: the checkpoint's
  double top_p = -1;
  int64_t top_k = 0;  // 0: the checkpoint's
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

// Hands events from the engine's thread to the one that prints.
class QueueSink final : public engine::TokenSink {
 public:
  void on_event(engine::TokenEvent event) override { events_.try_push(std::move(event)); }
  engine::TokenEvent next() { return *events_.pop(); }

 private:
  static constexpr size_t kCapacity = 1 << 22;  // one event a step at most
  BoundedQueue<engine::TokenEvent> events_{kCapacity};
};

std::vector<int32_t> prompt_ids(const GenerateOptions& options, const Composition& composition) {
  if (options.chat.empty()) {
    std::vector<int32_t> ids =
        text::load_text_prefix(composition.tokenizer_path, *composition.tokenizer);
    const auto text = composition.tokenizer->encode(options.prompt, text::ControlTokens::kParse);
    ids.insert(ids.end(), text.begin(), text.end());
    return ids;
  }
  if (composition.chat_format == nullptr) {
    throw_error("{}: no chat template; use --prompt", options.serve.model_path);
  }
  text::ChatRequest chat;
  json::Array messages;
  if (!options.system.empty()) {
    messages.emplace_back(json::Object{{"role", "system"}, {"content", options.system}});
  }
  messages.emplace_back(json::Object{{"role", "user"}, {"content", options.chat}});
  chat.messages = std::move(messages);
  if (options.no_thinking) {
    chat.chat_template_kwargs = json::Object{{"enable_thinking", false}, {"thinking", false}};
  }
  const auto pieces = composition.chat_format->render(chat);
  if (!pieces.ok()) throw_error("{}", pieces.status().message);
  return composition.tokenizer->encode(pieces.value());
}

engine::GenerateRequest make_request(const GenerateOptions& options,
                                     const Composition& composition) {
  engine::GenerateRequest request;
  request.rid = "generate";
  request.prompt_ids = prompt_ids(options, composition);
  if (request.prompt_ids.empty()) throw_error("the prompt is empty");
  const server::SamplingDefaults defaults =
      server::load_sampling_defaults(options.serve.model_path);
  engine::SamplingParams& s = request.sampling;
  s.max_new_tokens = options.max_new_tokens;
  const double temperature =
      options.temperature >= 0 ? options.temperature : defaults.temperature.value_or(1.0);
  s.temperature = static_cast<float>(temperature);
  s.top_p = static_cast<float>(options.top_p > 0 ? options.top_p : defaults.top_p.value_or(1.0));
  s.top_k = static_cast<int32_t>(options.top_k != 0 ? options.top_k : defaults.top_k.value_or(-1));
  s.min_p = static_cast<float>(defaults.min_p.value_or(0.0));
  s.repetition_penalty = static_cast<float>(defaults.repetition_penalty.value_or(1.0));
  s.ignore_eos = options.ignore_eos;
  return request;
}

const char* finish_word(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::kStop:
      return "stop";
    case engine::FinishReason::kLength:
      return "length";
    default:
      return "abort";
  }
}

void print_summary(const server::ChoiceOutput& output,
                   const std::string& text,
                   const std::vector<int32_t>& ids,
                   double seconds) {
  json::Array id_list;
  for (const int32_t id : ids) id_list.emplace_back(int64_t{id});
  const json::Value summary = json::Object{{"text", text},
                                           {"output_ids", std::move(id_list)},
                                           {"finish_reason", finish_word(output.finish())},
                                           {"prompt_tokens", output.prompt_tokens()},
                                           {"completion_tokens", output.completion_tokens()},
                                           {"seconds", seconds}};
  write_out(json::dump(summary) + '\n');
}

void stream_answer(const GenerateOptions& options, Composition& composition, const Clock& clock) {
  engine::GenerateRequest request = make_request(options, composition);
  auto sink = std::make_shared<QueueSink>();
  const int64_t begin_ns = clock.now_ns();
  const Status status = composition.engine->submit(std::move(request), sink);
  if (!status.ok()) throw_error("{}", status.message);
  server::ChoiceOutput output(*composition.tokenizer, {.stop = options.stop});
  std::string text;
  std::vector<int32_t> ids;
  while (!output.finished()) {
    const server::ChoiceDelta delta = output.append(sink->next());
    text += delta.text;
    ids.insert(ids.end(), delta.ids.begin(), delta.ids.end());
    if (options.json) continue;
    write_out(delta.text);
  }
  if (output.finish() == engine::FinishReason::kError) throw_error("{}", output.error().message);
  const double seconds = static_cast<double>(clock.now_ns() - begin_ns) * 1e-9;
  if (options.json) {
    print_summary(output, text, ids, seconds);
  } else {
    write_out("\n");
    log::info("{} prompt tokens, {} tokens in {:.2f} s", output.prompt_tokens(),
              output.completion_tokens(), seconds);
  }
}

void run_generate(GenerateOptions& options, OptionTable& table) {
  table.apply();
  log::setup(options.serve.log_level);
  if (options.prompt.empty() == options.chat.empty()) {
    throw_error("give either --prompt or --chat");
  }
  if (options.chat.empty() && (options.no_thinking || !options.system.empty())) {
    throw_error("--system and --no-thinking belong to --chat");
  }
  if (options.temperature < 0 && options.temperature != -1) {
    throw_error("--temperature {}: must be 0 or more, or -1 for the checkpoint's",
                options.temperature);
  }
  if (options.top_p <= 0 && options.top_p != -1) {
    throw_error("--top-p {}: must be above 0, or -1 for the checkpoint's", options.top_p);
  }
  if (std::find(options.stop.begin(), options.stop.end(), "") != options.stop.end()) {
    throw_error("--stop: an empty string ends nothing");
  }
  options.serve.max_running_requests = 1;
  if (!options.serve.trace.empty()) trace::start(options.serve.trace);
  const SteadyClock clock;
  auto composition = compose(options.serve, clock);
  stream_answer(options, *composition, clock);
  composition->engine->stop(0);
  if (!options.serve.trace.empty()) trace::stop();
}

void add_prompt_rows(OptionTable& t, GenerateOptions& o) {
  t.section("Prompt");
  t.text("--prompt", o.prompt, "TEXT", "Text to go on with, control tokens included.");
  t.text("--chat", o.chat, "TEXT", "A user's message, put into the checkpoint's chat format.");
  t.text("--system", o.system, "TEXT", "A system message before it.");
  t.toggle("--no-thinking", o.no_thinking, "Asks the chat format to leave out the thinking.");
  t.section("Answer");
  t.integer("--max-new-tokens --max-tokens", o.max_new_tokens, 0, INT32_MAX, "Tokens at most.");
  t.number("--temperature", o.temperature, -1, 1000, "0: greedy; -1: the checkpoint's.");
  t.number("--top-p", o.top_p, -1, 1, "-1: the checkpoint's.");
  t.integer("--top-k", o.top_k, -1, INT32_MAX, "-1: all; 0: the checkpoint's.");
  t.texts("--stop", o.stop, "TEXT", "Ends the answer before this string; may be repeated.");
  t.toggle("--ignore-eos", o.ignore_eos, "Goes on behind the end-of-text token.");
  t.toggle("--json", o.json, "One JSON object at the end instead of the streamed text.");
}

}  // namespace

Command generate_command() {
  struct State {
    GenerateOptions options;
    OptionTable table = engine_option_table(options.serve);
  };
  auto state = std::make_shared<State>();
  state->options.serve.log_level = "warning";
  add_prompt_rows(state->table, state->options);
  return make_command("generate", "Answer one prompt on stdout", state,
                      [state] { run_generate(state->options, state->table); });
}

}  // namespace winnow::app
