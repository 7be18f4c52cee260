// What the load client costs and how true its times are: CPU of the client an event, and the error
// of a gap, at many streams. The server says in each event when it wrote it.
//   winnow_client_load [--streams N] [--events N] [--gap-ms X] [--io-threads N] [--text-bytes N]
//   winnow_client_load --serve-only --port N --tokenizer DIR    for other clients
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/open_files.h"
#include "bench/event_reader.h"
#include "bench/statistics.h"
#include "bench/stream_client.h"
#include "paced_server.h"

namespace winnow {
namespace {

struct LoadOptions {
  PacedServerOptions server;
  double gap_ms = 20;
  int io_threads = 1;
  bool serve_only = false;
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Reader final : public bench::StreamReader {
 public:
  explicit Reader(int num_events) {
    sent.reserve(static_cast<size_t>(num_events));
    received.reserve(static_cast<size_t>(num_events));
  }
  void on_start(int64_t now_ns) override { record.start_ns = now_ns; }
  void on_event(std::string_view data, int64_t received_ns) override {
    events_.on_event(data, received_ns);
    constexpr std::string_view kMark = "\"sent_ns\":";
    const size_t at = data.rfind(kMark);
    if (at == data.npos) return;
    int64_t sent_ns = 0;
    std::from_chars(data.data() + at + kMark.size(), data.data() + data.size(), sent_ns);
    sent.push_back(sent_ns);
    received.push_back(received_ns);
  }
  void on_end(bench::StreamEnd end) override {
    if (!end.error.empty()) record.error = std::move(end.error);
  }

  bench::RequestRecord record;
  std::vector<int64_t> sent;
  std::vector<int64_t> received;

 private:
  bench::EventReader events_{bench::EventReaderOptions{}, record};
};

void print_errors(const char* what, std::vector<double> errors_ms) {
  const bench::Summary s = bench::summarize(std::move(errors_ms));
  fmt::print("{}: mean {:.3f} ms, P99 {:.3f} ms, largest {:.3f} ms\n", what, s.mean, s.p99, s.max);
}

void measure(const LoadOptions& options) {
  const PacedServer server(options.server);
  bench::StreamClient client(
      {.url = {.host = "127.0.0.1", .port = static_cast<uint16_t>(server.port()), .base = {}},
       .io_threads = options.io_threads});
  std::vector<std::shared_ptr<Reader>> readers;
  const double cpu_before = cpu_seconds();
  for (int i = 0; i < options.server.num_streams; ++i) {
    readers.push_back(std::make_shared<Reader>(options.server.num_events));
    client.start({.target = "/generate", .body = "{\"text\":\"\"}"}, readers.back());
  }
  client.wait();
  const double cpu_s = cpu_seconds() - cpu_before;
  int64_t events = 0;
  int64_t failed = 0;
  int64_t first = INT64_MAX;
  int64_t last = 0;
  std::vector<double> delays, gap_errors, pace_errors;
  for (const auto& r : readers) {
    failed += r->record.ok() ? 0 : 1;
    events += static_cast<int64_t>(r->received.size());
    for (size_t i = 0; i < r->received.size(); ++i) {
      first = std::min(first, r->received[i]);
      last = std::max(last, r->received[i]);
      delays.push_back(static_cast<double>(r->received[i] - r->sent[i]) * 1e-6);
      if (i == 0) continue;
      const auto received = static_cast<double>(r->received[i] - r->received[i - 1]) * 1e-6;
      const auto sent = static_cast<double>(r->sent[i] - r->sent[i - 1]) * 1e-6;
      gap_errors.push_back(std::abs(received - sent));
      pace_errors.push_back(std::abs(received - options.gap_ms));
    }
  }
  const double seconds = static_cast<double>(last - first) * 1e-9;
  fmt::print("{} streams, {} failed, {} events in {:.2f} s: {:.0f} events/s\n", readers.size(),
             failed, events, seconds, static_cast<double>(events) / seconds);
  fmt::print("client CPU {:.2f} s: {:.2f} us an event\n", cpu_s,
             cpu_s * 1e6 / static_cast<double>(events));
  print_errors("write to receive time", std::move(delays));
  print_errors("error of a gap against the writes", std::move(gap_errors));
  print_errors(fmt::format("error of a gap against {:g} ms", options.gap_ms).c_str(),
               std::move(pace_errors));
}

int run(int argc, char** argv) {
  LoadOptions options;
  options.server.num_streams = 1000;
  CLI::App app("Cost and truth of the load client", "winnow_client_load");
  app.add_option("--streams", options.server.num_streams)->check(CLI::Range(0, 60000));
  app.add_option("--events", options.server.num_events)->check(CLI::Range(2, 1000000));
  app.add_option("--gap-ms", options.gap_ms)->check(CLI::Range(0.1, 10000.0));
  app.add_option("--text-bytes", options.server.text_bytes)->check(CLI::Range(0, 1000000));
  app.add_option("--io-threads", options.io_threads)->check(CLI::Range(1, 64));
  app.add_option("--port", options.server.port)->check(CLI::Range(0, 65535));
  app.add_option("--tokenizer", options.server.tokenizer_path);
  app.add_flag("--serve-only", options.serve_only);
  CLI11_PARSE(app, argc, argv);
  options.server.gap_ns = std::llround(options.gap_ms * 1e6);
  raise_open_file_limit();
  if (!options.serve_only) {
    measure(options);
    return 0;
  }
  const PacedServer server(options.server);
  fmt::print("http://127.0.0.1:{}\n", server.port());
  std::fflush(stdout);
  server.wait();
  return 0;
}

}  // namespace
}  // namespace winnow

int main(int argc, char** argv) {
  try {
    return winnow::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "winnow_client_load: {}\n", error.what());
    return 1;
  }
}
