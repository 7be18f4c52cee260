// GET /v1/models, /v1/models/{id}, /model_info, /server_info
#include "base/json.h"
#include "server/api_error.h"
#include "server/endpoints.h"

namespace winnow::server {
namespace {

constexpr double kNsToS = 1e-9;

json::Value model_card(const Api& api) {
  return json::Object{{"id", api.config.served_model_name},   {"object", "model"},
                      {"created", api.created_unix_s},        {"owned_by", "winnow"},
                      {"root", api.config.served_model_name}, {"parent", nullptr},
                      {"max_model_len", api.context_length()}};
}

json::Object internal_state(const Api& api) {
  const engine::EngineStats stats = api.engine.stats();
  const int64_t page_size = api.engine.options().page_size;
  return {{"last_gen_throughput", stats.generation_tokens_per_second},
          {"num_running_reqs", stats.num_running},
          {"num_queue_reqs", stats.num_queued},
          {"memory_usage", json::Object{{"token_capacity", stats.total_pages * page_size}}},
          {"kv_available_tokens", stats.free_pages * page_size},
          {"kv_evictable_tokens", stats.cached_pages * page_size},
          {"live_requests", api.live.size()}};
}

std::string_view state_word(const Api& api) {
  if (!api.engine.stats().alive) return "failed";
  switch (api.state.load()) {
    case ServerState::kStarting:
      return "starting";
    case ServerState::kReady:
      return "ready";
    case ServerState::kDraining:
      break;
  }
  return "draining";
}

}  // namespace

void list_models(Api& api, Call& call) {
  const json::Value body = json::Object{{"object", "list"}, {"data", json::Array{model_card(api)}}};
  call.exchange->respond({.body = json::dump(body)});
}

void show_model(Api& api, Call& call) {
  if (call.path_parameter == api.config.served_model_name) {
    return call.exchange->respond({.body = json::dump(model_card(api))});
  }
  const json::Value body = json::Object{
      {"error", json::Object{{"message", "The model '" + presentable(call.path_parameter) +
                                             "' does not exist"},
                             {"type", "invalid_request_error"},
                             {"param", "model"},
                             {"code", "model_not_found"}}}};
  call.exchange->respond({.status = 404, .body = json::dump(body)});
}

void model_info(Api& api, Call& call) {
  const json::Value body = json::Object{{"model_path", api.config.model_path},
                                        {"tokenizer_path", api.config.tokenizer_path},
                                        {"is_generation", true},
                                        {"preferred_sampling_params", nullptr},
                                        {"weight_version", api.config.weight_version}};
  call.exchange->respond({.body = json::dump(body)});
}

void server_info(Api& api, Call& call) {
  json::Object info = api.config.launch_arguments;
  const engine::EngineOptions& options = api.engine.options();
  info.emplace_back("status", state_word(api));
  info.emplace_back("max_total_num_tokens", int64_t{options.num_pages} * options.page_size);
  info.emplace_back("max_req_input_len", api.context_length() - 1);
  info.emplace_back("uptime_s", static_cast<double>(api.clock.now_ns() - api.started_ns) * kNsToS);
  info.emplace_back("startup_time", api.created_unix_s);
  info.emplace_back("internal_states", json::Array{internal_state(api)});
  info.emplace_back("version", WINNOW_VERSION);
  call.exchange->respond({.body = json::dump(std::move(info))});
}

}  // namespace winnow::server
