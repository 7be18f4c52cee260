// Clients that leave, engines that fail, numbers that must add up: B103, B104, B112, B113.
#include <dirent.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <thread>

#include "testing/sanitizers.h"
#include "testing/serving_fixture.h"
#include "testing/stream_group.h"

namespace winnow {
namespace {

using testing::at;
using testing::eventually;
using testing::HttpConnection;
using testing::HttpReply;
using testing::request_text;
using testing::Script;
using testing::ServingFixture;
using testing::ServingOptions;
using testing::text_script;

std::string endless(std::string_view more = "") {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"x"}}],"max_tokens":5000,
                          "ignore_eos":true{}{}}})",
                     more.empty() ? "" : ",", more);
}

std::string chat_request(std::string_view more = "") {
  return request_text("POST", "/v1/chat/completions", endless(more));
}

// B103
TEST(ServingFaults, AClientThatLeavesEndsItsSequences) {
  ServingFixture serving(text_script(std::string(8000, 'x')));
  serving.executor().set_step_delay_ns(200'000);
  for (const char* kind : {"", R"("stream":true)", R"("n":2)", R"("n":3,"stream":true)"}) {
    HttpConnection leaver(serving.port());
    leaver.send(chat_request(kind));
    ASSERT_TRUE(eventually([&] { return serving.engine().stats().num_running > 0; }));
    leaver.close();
    EXPECT_TRUE(serving.quiet()) << kind;
  }
  EXPECT_EQ(serving.engine().stats().finished_abort, 1 + 1 + 2 + 3);
}

TEST(ServingFaults, LeavingWhileQueuedOrDuringPrefillLeavesOthersAlone) {
  ServingOptions options;
  options.engine.max_running_requests = 1;
  ServingFixture serving(text_script("fine"), options);
  serving.executor().stall();
  HttpConnection stays(serving.port());
  stays.send(request_text("POST", "/generate", R"({"text":"x"})"));
  ASSERT_TRUE(eventually([&] { return serving.api().live.size() == 1; }));
  HttpConnection queued(serving.port());
  queued.send(chat_request());
  ASSERT_TRUE(eventually([&] { return serving.api().live.size() == 2; }));
  queued.close();
  ASSERT_TRUE(eventually([&] { return serving.http().stats().clients_gone == 1; }));
  serving.executor().release();
  EXPECT_EQ(at(stays.read_reply().json(), "text"), json::Value("fine"));
  EXPECT_TRUE(serving.quiet());

  serving.executor().stall();
  HttpConnection prefilling(serving.port());
  prefilling.send(chat_request());
  ASSERT_TRUE(eventually([&] { return serving.api().live.size() == 1; }));
  prefilling.close();
  serving.executor().release();
  EXPECT_TRUE(serving.quiet());
  EXPECT_EQ(serving.post("/generate", R"({"text":"x"})").status, 200);
}

TEST(ServingFaults, FiveHundredDisconnectsLeaveNothingBehind) {
  ServingFixture serving(text_script(std::string(8000, 'x')));
  serving.executor().set_step_delay_ns(50'000);
  HttpConnection witness(serving.port());
  witness.send(request_text("POST", "/generate",
                            R"({"text":"w","stream":true,"sampling_params":{"max_new_tokens":2000,
                                "ignore_eos":true}})"));
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<HttpConnection>> leavers;
    for (int i = 0; i < 50; ++i) {
      leavers.push_back(std::make_unique<HttpConnection>(serving.port()));
      const char* kinds[] = {"", R"("stream":true)", R"("n":2)"};
      std::string request = chat_request(kinds[random() % 3]);
      if (random() % 10 == 0) request.resize(request.size() / 2);
      leavers.back()->send(request);
      if (random() % 3 == 0) leavers[random() % leavers.size()]->close();
      if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  const HttpReply kept = witness.read_reply();
  EXPECT_TRUE(kept.complete);
  EXPECT_EQ(kept.events().back(), "[DONE]");
  EXPECT_TRUE(serving.quiet());
  EXPECT_EQ(serving.post("/generate", R"({"text":"x"})").status, 200);
}

int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return -1;
}

int64_t open_files() {
  int64_t count = 0;
  DIR* dir = ::opendir("/proc/self/fd");
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

// B104; sanitizers, which are slow and keep freed memory for a while, take a tenth of its count.
TEST(ServingFaults, MemoryAndDescriptorsStayFlat) {
  ServingFixture serving(text_script("ab"));
  const std::string bodies[] = {
      R"({"text":"x","sampling_params":{"max_new_tokens":1}})",
      R"({"text":"x","sampling_params":{"top_p":7}})",
      R"({"text":"x","stream":true,"sampling_params":{"stop":"b"}})",
      R"({"text":"y","rid":"z","sampling_params":{"max_new_tokens":1}})",
  };
  auto run = [&](int count) {
    HttpConnection connection(serving.port());
    for (int i = 0; i < count; ++i) {
      connection.send(request_text("POST", "/generate", bodies[i % 4]));
      EXPECT_TRUE(connection.read_reply().complete);
      if (i % 10 == 0) serving.post("/abort_request", R"({"rid":"z"})");
    }
  };
  run(300);
  EXPECT_TRUE(serving.quiet());
  EXPECT_TRUE(eventually([&] { return serving.http().stats().open_connections == 0; }));
  const int64_t kib_before = resident_kib();
  const int64_t files_before = open_files();
  run(testing::kSanitized ? 1000 : 10'000);
  EXPECT_TRUE(serving.quiet());
  EXPECT_TRUE(eventually([&] { return serving.http().stats().open_connections == 0; }));
  if (!testing::kSanitized) {
    EXPECT_LT(resident_kib() - kib_before, 5 << 10);
  }
  EXPECT_EQ(open_files(), files_before);
}

// B112: one request fails before token 1, after token 3, at the last token.
TEST(ServingFaults, AFailingSequenceEndsItsStreamProperly) {
  for (const int64_t after : {0, 3, 6}) {
    ServingFixture serving([&](const engine::GenerateRequest& request) {
      Script script = text_script("abcdef");
      if (request.prompt_ids[0] == 'F') script.error_after = after;
      return script;
    });
    for (const char* body : {R"({"text":"F"})", R"({"text":["F","x"]})"}) {
      const HttpReply whole = serving.post("/generate", body);
      EXPECT_EQ(whole.status, 500);
      EXPECT_TRUE(at(whole.json(), "error.message").is_string());
    }
    for (const char* path : {"/generate", "/v1/completions", "/v1/chat/completions"}) {
      const bool chat = std::string_view(path).ends_with("chat/completions");
      const std::string body = chat ? R"({"input_ids":[70],"stream":true})"
                                    : R"({"text":"F","prompt":"F","stream":true,"max_tokens":50})";
      HttpConnection connection(serving.port());
      connection.send(request_text("POST", path, body));
      const HttpReply stream = connection.read_reply();
      if (after == 0) {  // nothing was sent yet: a proper status
        EXPECT_EQ(stream.status, 500) << path;
        continue;
      }
      EXPECT_EQ(stream.status, 200);
      const auto events = stream.events();
      int errors = 0;
      for (const std::string& event : events) {
        errors += event.starts_with("{\"error\":");
      }
      EXPECT_EQ(errors, 1) << stream.body;
      EXPECT_EQ(std::count(events.begin(), events.end(), "[DONE]"), 1);
      EXPECT_EQ(events.back(), "[DONE]");
      EXPECT_TRUE(events[events.size() - 2].starts_with("{\"error\":"));
      EXPECT_TRUE(connection.at_end());
    }
    EXPECT_EQ(at(serving.post("/generate", R"({"text":"x"})").json(), "text"),
              json::Value("abcdef"));
    EXPECT_TRUE(serving.quiet());
  }
}

TEST(ServingFaults, ALostDeviceFailsEveryRequestAndHealth) {
  ServingFixture serving(text_script(std::string(1000, 'x')));
  serving.executor().set_step_delay_ns(500'000);
  HttpConnection stream(serving.port());
  stream.send(chat_request(R"("stream":true)"));
  HttpConnection whole(serving.port());
  whole.send(chat_request());
  ASSERT_TRUE(stream.read_until("content"));
  ASSERT_TRUE(eventually([&] { return serving.engine().stats().num_running == 2; }));
  serving.executor().throw_at_step(serving.executor().num_steps() + 2);
  const HttpReply ended = stream.read_reply();
  EXPECT_TRUE(ended.complete);
  EXPECT_EQ(ended.events().back(), "[DONE]");
  EXPECT_EQ(whole.read_reply().status, 500);
  EXPECT_TRUE(eventually([&] { return serving.get("/health").status == 503; }));
  EXPECT_EQ(serving.post("/generate", R"({"text":"x"})").status, 503);
  EXPECT_EQ(serving.get("/metrics").status, 200);
  EXPECT_EQ(serving.get("/v1/models").status, 200);
}

TEST(ServingFaults, AFullQueueIs503) {
  ServingOptions options;
  options.engine.max_running_requests = 1;
  options.engine.max_queued_requests = 2;
  ServingFixture serving(text_script("x"), options);
  serving.executor().stall();
  std::vector<std::unique_ptr<HttpConnection>> connections;
  bool refused = false;
  for (int i = 0; i < 20 && !refused; ++i) {
    connections.push_back(std::make_unique<HttpConnection>(serving.port(), 300));
    connections.back()->send(request_text("POST", "/generate", R"({"text":"x","stream":true})"));
    if (i >= 4) refused = connections.back()->read_reply().status == 503;
  }
  EXPECT_TRUE(refused);
  serving.executor().release();
  EXPECT_TRUE(serving.quiet());
}

// "name{labels}" -> value; fails on a line that is neither a comment nor a sample.
std::map<std::string, double> parse_metrics(const std::string& text) {
  std::map<std::string, double> out;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) continue;
    const size_t space = line.rfind(' ');
    EXPECT_NE(space, std::string::npos) << line;
    EXPECT_TRUE(line.starts_with("sglang:")) << line;
    EXPECT_TRUE(out.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second);
  }
  return out;
}

// Reads /metrics again and again: no value is below zero, no counter ever falls.
class Scraper {
 public:
  explicit Scraper(ServingFixture& serving) : thread_([this, &serving] { scrape(serving); }) {}
  ~Scraper() { stop(); }
  void stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void scrape(ServingFixture& serving) {
    std::map<std::string, double> last;
    while (!done_) {
      auto now = parse_metrics(serving.get("/metrics").body);
      for (const auto& [name, value] : now) {
        EXPECT_GE(value, 0) << name;
        const bool counter = name.find("_total{") != name.npos ||
                             name.find("_bucket{") != name.npos ||
                             name.find("_count{") != name.npos;
        if (counter && last.count(name) > 0) {
          EXPECT_GE(value, last[name]) << name;
        }
      }
      last = std::move(now);
      serving.get("/health");
    }
  }

  std::atomic<bool> done_{false};
  std::thread thread_;
};

// A sample of what parse_metrics found, by its name and one label besides the model's.
double sample(const std::map<std::string, double>& metrics,
              const std::string& name,
              const std::string& label = "") {
  const std::string labels = label.empty() ? "" : "," + label;
  const std::string key = fmt::format("sglang:{}{{model_name=\"default\"{}}}", name, labels);
  EXPECT_EQ(metrics.count(key), 1u) << key;
  return metrics.count(key) > 0 ? metrics.at(key) : -1;
}

// B113
TEST(ServingFaults, MetricsAddUpAndCountersNeverFall) {
  ServingOptions options;
  options.engine.num_pages = 600;
  ServingFixture serving(
      [](const engine::GenerateRequest& request) {
        return text_script(std::string(request.prompt_ids[0] % 20, 'x'), {1, 3, 2});
      },
      options);
  serving.executor().set_step_delay_ns(20'000);
  Scraper scraper(serving);
  std::mt19937 random(5);
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t accepted = 0;
  int64_t refused = 0;
  for (int i = 0; i < 250; ++i) {
    const int64_t first = 60 + static_cast<int64_t>(random() % 20);
    const int kind = static_cast<int>(random() % 5);
    if (kind == 0) {
      EXPECT_EQ(serving.post("/generate", R"({"text":""})").status, 400);
      ++refused;
      continue;
    }
    const std::string more = kind == 1 ? R"(,"top_p":0.5)" : kind == 2 ? R"(,"stop":"xxxx")" : "";
    const HttpReply reply =
        serving.post("/generate", fmt::format(R"({{"input_ids":[{},1,2],"sampling_params":
            {{"max_new_tokens":15{}}}}})",
                                              first, more));
    ASSERT_EQ(reply.status, 200);
    ++accepted;
    prompt_tokens += at(reply.json(), "meta_info.prompt_tokens").as_integer();
    completion_tokens += at(reply.json(), "meta_info.completion_tokens").as_integer();
  }
  scraper.stop();
  EXPECT_TRUE(serving.quiet());
  const auto end = parse_metrics(serving.get("/metrics").body);
  const auto value = [&](const char* name, const std::string& label = "") {
    return sample(end, name, label);
  };
  double finished = 0;
  for (const char* reason : {"stop", "length", "abort", "error"}) {
    finished += value("num_finished_requests_total", fmt::format("reason=\"{}\"", reason));
  }
  EXPECT_EQ(finished, accepted);
  EXPECT_EQ(value("num_requests_total", "is_streaming=\"false\""), accepted);
  EXPECT_EQ(value("num_refused_requests_total"), refused);
  EXPECT_EQ(value("prompt_tokens_total"), prompt_tokens);
  EXPECT_EQ(value("generation_tokens_total"), completion_tokens);
  EXPECT_EQ(value("e2e_request_latency_seconds_count"), accepted);
  EXPECT_EQ(value("num_running_reqs"), 0);
  EXPECT_EQ(value("num_queue_reqs"), 0);
  EXPECT_EQ(value("token_usage"), 0);
}

// B113: those that leave are counted as such, and what a preempted sequence computes twice is
// counted once.
TEST(ServingFaults, MetricsOverAbortsAndPreemptions) {
  constexpr int kStay = 20, kLeave = 20, kTokens = 60;
  ServingOptions options;
  options.engine.num_pages = 24;  // of 16 tokens: room for four of the answers
  ServingFixture serving(text_script(std::string(100, 'x')), options);
  const std::string request =
      request_text("POST", "/v1/completions",
                   fmt::format(R"({{"prompt":"Hello","stream":true,"max_tokens":{}}})", kTokens));
  Scraper scraper(serving);
  serving.executor().stall();
  testing::StreamGroup stay(serving.port(), kStay, request);
  testing::StreamGroup leave(serving.port(), kLeave, request);
  ASSERT_TRUE(eventually([&] { return serving.api().live.size() == kStay + kLeave; }));
  for (int i = 0; i < kLeave; ++i) leave.close(i);
  ASSERT_TRUE(eventually([&] { return serving.http().stats().clients_gone == kLeave; }));
  serving.executor().release();
  ASSERT_TRUE(stay.read_all());
  scraper.stop();
  EXPECT_TRUE(serving.quiet());
  const int64_t preemptions = serving.engine().stats().preemptions;
  EXPECT_GT(preemptions, 0);
  const auto end = parse_metrics(serving.get("/metrics").body);
  EXPECT_EQ(sample(end, "num_retracted_reqs_total"), preemptions);
  EXPECT_EQ(sample(end, "num_requests_total", "is_streaming=\"true\""), kStay + kLeave);
  EXPECT_EQ(sample(end, "num_finished_requests_total", "reason=\"length\""), kStay);
  EXPECT_EQ(sample(end, "num_finished_requests_total", "reason=\"abort\""), kLeave);
  EXPECT_EQ(sample(end, "num_aborted_requests_total"), kLeave);
  const double tokens = sample(end, "generation_tokens_total");
  EXPECT_GE(tokens, kStay * kTokens);
  EXPECT_LE(tokens,
            kStay * kTokens + kLeave);  // at most the step that was held, of those that left
  EXPECT_EQ(sample(end, "num_running_reqs"), 0);
  EXPECT_EQ(sample(end, "num_queue_reqs"), 0);
}

}  // namespace
}  // namespace winnow
