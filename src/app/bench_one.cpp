#include "app/bench_one.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "app/option_table.h"
#include "app/server_url.h"
#include "bench/send_one.h"

namespace winnow::app {

namespace {

struct OneOptions {
  bench::SendOneOptions send;
  std::string host = "localhost";
  int64_t port = 30000;
  std::string base_url;
  int64_t repeat = 1;
  int64_t warmup = 0;
};

OptionTable one_option_table(OneOptions& o) {
  OptionTable t;
  t.section("Server");
  t.text("--host", o.host, "NAME", "Where the server listens.");
  t.integer("--port", o.port, 1, 65535, "Its port.");
  t.text("--base-url", o.base_url, "URL", "http://HOST:PORT/PATH in place of the two.");
  t.section("Request");
  t.text("--prompt", o.send.prompt, "TEXT", "Asks for a FastAPI server where none is given.");
  t.integer("--max-new-tokens --max-tokens", o.send.max_new_tokens, 0, INT32_MAX,
            "Tokens at most.");
  t.number("--temperature", o.send.temperature, 0, 1000, "0: greedy.");
  t.number("--frequency-penalty", o.send.frequency_penalty, -2, 2, "As in requests.");
  t.number("--presence-penalty", o.send.presence_penalty, -2, 2, "As in requests.");
  t.integer("--batch-size", o.send.batch_size, 1, 65536,
            "Prompts of the one request; the figures are the first one's.");
  t.toggle("--different-prompts", o.send.different_prompts,
           "\"Test case i: \" in front of each prompt of a batch.");
  t.toggle("--json", o.send.json, "Asks for JSON about Paris, under a JSON grammar.");
  t.toggle("--return-logprob", o.send.return_logprob, "Asks for log-probabilities.");
  t.toggle("--stream", o.send.stream, "Streams the answer.");
  t.section("Measuring");
  t.integer("--repeat", o.repeat, 1, 1000000, "Requests, one after another, a table each.");
  t.integer("--warmup", o.warmup, 0, 1000000, "Requests before them that are not shown.");
  return t;
}

void run_one(OneOptions& o, OptionTable& table) {
  table.apply();
  o.send.url = server_url(o.base_url, o.host, o.port);
  o.send.headers = bench::authorization_from_environment();
  for (int64_t i = 0; i < o.warmup; ++i) bench::send_one(o.send, [](std::string_view) {});
  for (int64_t i = 0; i < o.repeat; ++i) {
    const auto result = bench::send_one(o.send, [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    });
    if (!o.send.stream) fmt::print("{}", result.text);
    fmt::print("\n\n{}", bench::send_one_table(result));
    std::fflush(stdout);
  }
}

}  // namespace

Command bench_one_command() {
  struct State {
    OneOptions options;
    OptionTable table = one_option_table(options);
  };
  auto state = std::make_shared<State>();
  return make_command("one", "One request to a server", state,
                      [state] { run_one(state->options, state->table); });
}

}  // namespace winnow::app
