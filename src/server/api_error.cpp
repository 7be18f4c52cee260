#include "server/api_error.h"

#include "base/json.h"
#include "base/utf8.h"

namespace winnow::server {

std::string presentable(std::string_view text) {
  constexpr size_t kMaxBytes = 1000;
  std::string out(text.substr(0, kMaxBytes));
  if (text.size() > kMaxBytes) {
    while (!out.empty() && (out.back() & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && (out.back() & 0x80) != 0) out.pop_back();  // half of a character
    out += "...";
  }
  if (is_valid_utf8(out)) return out;
  for (char& c : out) {
    if ((c & 0x80) != 0) c = '?';
  }
  return out;
}

namespace {

std::string_view usual_type(int status) {
  switch (status) {
    case 400:
    case 405:
    case 408:
    case 413:
    case 431:
      return "BadRequestError";
    case 401:
    case 403:
      return "AuthenticationError";
    case 404:
      return "NotFoundError";
    case 503:
      return "ServiceUnavailableError";
    default:
      return "InternalServerError";
  }
}

// "message":...,"type":...,"param":...,"code":400
void append_members(std::string& out, const ApiError& error) {
  out += "\"message\":";
  json::append_string(out, presentable(error.message));
  out += ",\"type\":";
  json::append_string(out, error.type.empty() ? usual_type(error.http_status) : error.type);
  out += ",\"param\":";
  if (error.param.empty()) {
    out += "null";
  } else {
    json::append_string(out, presentable(error.param));
  }
  out += ",\"code\":" + std::to_string(error.http_status);
}

}  // namespace

ApiError api_error(const Status& status) {
  int http_status = 500;
  switch (status.code) {
    case StatusCode::kInvalidArgument:
      http_status = 400;
      break;
    case StatusCode::kNotFound:
      http_status = 404;
      break;
    case StatusCode::kTooLarge:
      http_status = 413;
      break;
    case StatusCode::kUnavailable:
    case StatusCode::kCancelled:
      http_status = 503;
      break;
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  return {http_status, status.message, status.param};
}

std::string error_body(const ApiError& error) {
  std::string out = "{\"object\":\"error\",";
  append_members(out, error);
  out += ",\"error\":{";
  append_members(out, error);
  out += "}}";
  return out;
}

HttpResponse error_response(const ApiError& error) {
  return {.status = error.http_status, .body = error_body(error)};
}

std::string error_event(const ApiError& error) {
  std::string out = "data: {\"error\":{\"object\":\"error\",";
  append_members(out, error);
  out += "}}\n\n";
  return out;
}

}  // namespace winnow::server
