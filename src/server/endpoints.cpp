#include "server/endpoints.h"

#include "server/api_error.h"
#include "server/protocol_reader.h"

namespace winnow::server {
namespace {

bool is_json_type(const HttpRequest& request) {
  const std::string* value = request.header("content-type");
  if (value == nullptr) return false;
  std::string_view type = *value;
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return equal_ignoring_case(type, "application/json");
}

}  // namespace

void refuse(Api& api, Exchange& exchange, const Status& status) {
  api.metrics.on_refused();
  exchange.respond(error_response(api_error(status)));
}

std::optional<json::Value> read_body(Api& api, Call& call, ContentType content_type) {
  if (content_type == ContentType::kMustBeJson && !is_json_type(call.request)) {
    refuse(api, *call.exchange,
           invalid_argument("content-type", "header content-type must be application/json"));
    return std::nullopt;
  }
  Result<json::Value> body = parse_object(call.request.body);
  call.request.take_body();
  if (!body.ok()) {
    refuse(api, *call.exchange, body.status());
    return std::nullopt;
  }
  return std::move(body.value());
}

}  // namespace winnow::server
