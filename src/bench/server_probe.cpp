#include "bench/server_probe.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace winnow::bench {

namespace {

constexpr double kProbeTimeoutS = 10;
using Seconds = std::chrono::duration<double>;

bool past(std::chrono::steady_clock::time_point start, double timeout_s) {
  return Seconds(std::chrono::steady_clock::now() - start).count() >= timeout_s;
}

}  // namespace

void ServerProbe::wait_ready(double timeout_s) {
  const auto start = std::chrono::steady_clock::now();
  bool told = false;
  while (timeout_s > 0) {
    const auto reply = client_.get("/v1/models", std::min(timeout_s, kProbeTimeoutS));
    if (reply.ok() && reply.value().ok()) return;
    const std::string why =
        reply.ok() ? "GET /v1/models: " + describe_failure(reply.value().status, reply.value().body)
                   : reply.status().message;
    if (past(start, timeout_s)) throw_error("no server after {:g} s: {}", timeout_s, why);
    if (!std::exchange(told, true)) {
      log::info("waiting for the server, {:g} s at most: {}", timeout_s, why);
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

json::Value ServerProbe::first_answer(std::initializer_list<std::string_view> targets) {
  for (const std::string_view target : targets) {
    const auto reply = client_.get(target, kProbeTimeoutS);
    if (!reply.ok() || !reply.value().ok()) continue;
    auto parsed = json::parse(reply.value().body, {.reject_duplicate_keys = false});
    if (parsed.ok()) return std::move(parsed.value());
  }
  return {};
}

std::string ServerProbe::model_name() {
  const json::Value models = first_answer({"/v1/models"});
  const json::Value* data = models.find("data");
  if (data != nullptr && data->is_array() && !data->as_array().empty()) {
    const json::Value* id = data->as_array().front().find("id");
    if (id != nullptr && id->is_string()) return id->as_string();
  }
  throw_error("{}/v1/models names no model; give --model", client_.url().text());
}

std::string ServerProbe::tokenizer_path() {
  const json::Value info = first_answer({"/model_info", "/get_model_info"});
  for (const char* key : {"tokenizer_path", "model_path"}) {
    const json::Value* path = info.find(key);
    if (path != nullptr && path->is_string() && !path->as_string().empty()) {
      return path->as_string();
    }
  }
  return "";
}

json::Value ServerProbe::server_info() {
  return first_answer({"/server_info", "/get_server_info"});
}

void ServerProbe::flush_cache(const BackendFormat& format, double timeout_s) {
  if (format.flush_target.empty()) {
    throw_error("--flush-cache: --backend {} has no way to ask for it", format.name);
  }
  const std::string target = format.says_its_state
                                 ? fmt::format("{}?timeout={:g}", format.flush_target, timeout_s)
                                 : std::string(format.flush_target);
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const auto reply = client_.post_json(target, "", timeout_s + kProbeTimeoutS);
    if (reply.ok() && reply.value().ok()) return;
    if (past(start, timeout_s)) {
      throw_error("--flush-cache: {}",
                  reply.ok() ? describe_failure(reply.value().status, reply.value().body)
                             : reply.status().message);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // not idle yet
  }
}

}  // namespace winnow::bench
