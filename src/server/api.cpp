#include "server/api.h"

#include <fmt/format.h>

#include <chrono>
#include <random>

namespace winnow::server {
namespace {

constexpr size_t kInputQueue = 4096;      // requests waiting to be parsed; then 503
constexpr size_t kOutputQueue = 1 << 20;  // at most one job for each live request

}  // namespace

Api::Api(ServerConfig config,
         engine::Engine& engine,
         const text::Tokenizer& tokenizer,
         const text::ChatFormat* chat_format,
         const Clock& clock)
    : config(std::move(config)),
      engine(engine),
      tokenizer(tokenizer),
      chat_format(chat_format),
      clock(clock),
      started_ns(clock.now_ns()),
      created_unix_s(unix_seconds()),
      output_workers(this->config.output_workers, kOutputQueue),
      input_workers(this->config.tokenizer_workers, kInputQueue) {}

std::string random_id() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return fmt::format("{:016x}{:016x}", generator(), generator());
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace winnow::server
