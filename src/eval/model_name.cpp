#include "eval/model_name.h"

#include "base/error.h"
#include "base/json.h"
#include "bench/http_client.h"

namespace winnow::eval {

std::string ask_model_name(const bench::Url& url, const bench::HttpHeaders& headers, Api api) {
  const std::string target = api == Api::kGenerate ? "/get_model_info" : "/v1/models";
  constexpr double kTimeout_s = 30;
  bench::HttpClient client(url, headers);
  const auto reply = client.get(target, kTimeout_s);
  if (!reply.ok()) throw_error("{}", reply.status().message);
  if (!reply.value().ok()) {
    throw_error("{}{}: {}", url.text(), target,
                bench::describe_failure(reply.value().status, reply.value().body));
  }
  const Result<json::Value> parsed = json::parse(reply.value().body);
  const json::Value* name = nullptr;
  if (parsed.ok() && api == Api::kGenerate) {
    name = parsed.value().find("model_path");
  } else if (parsed.ok()) {
    const json::Value* models = parsed.value().find("data");
    if (models != nullptr && models->is_array() && !models->as_array().empty()) {
      name = models->as_array().front().find("id");
    }
  }
  if (name == nullptr || !name->is_string()) {
    throw_error("{}{}: the answer names no model", url.text(), target);
  }
  return name->as_string();
}

}  // namespace winnow::eval
