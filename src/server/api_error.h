// The one error body of every endpoint. It carries what clients of three kinds look for: OpenAI's
// nested "error" object, SGLang's flat members of /v1/*, and its "error.message" of /generate.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "server/http_message.h"

namespace winnow::server {

struct ApiError {
  int http_status = 500;
  std::string message;
  std::string param = {};  // request field at fault, "" for none
  std::string type = {};   // "" takes the usual word for the status
};

ApiError api_error(const Status& status);

// {"object":"error","message":...,"type":...,"param":...,"code":400,"error":{...}}
std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);
// A piece of a request as a message may show it: UTF-8 whatever the bytes, and not long.
std::string presentable(std::string_view text);
// An SSE event for what goes wrong once a stream has begun: "data: {"error":{...}}\n\n".
std::string error_event(const ApiError& error);

}  // namespace winnow::server
