#include "bench/http_message.h"

#include <cstdlib>

#include "base/json.h"
#include "text/unicode_utf8.h"

namespace winnow::bench {

std::string request_bytes(const Url& url,
                          const HttpRequest& request,
                          const HttpHeaders& headers,
                          bool close) {
  std::string out =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: winnow\r\nAccept: */*\r\n",
                  request.method, url.base, request.target, url.authority());
  for (const auto& [name, value] : headers) out += fmt::format("{}: {}\r\n", name, value);
  if (close) out += "Connection: close\r\n";
  if (request.method != "GET") {
    out += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n",
                       request.body.size());
  }
  return out + "\r\n" + request.body;
}

HttpHeaders authorization_from_environment() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string key = variable("OPENAI_API_KEY"); !key.empty()) {
    return {{"Authorization", "Bearer " + key}};
  }
  if (std::string key = variable("API_KEY"); !key.empty()) return {{"Authorization", key}};
  return {};
}

std::string printable(std::string_view text) {
  constexpr size_t kMaxText = 300;
  std::string out = text::repaired_utf8(text.substr(0, kMaxText));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return out;
}

std::string describe_failure(int status, std::string_view body) {
  std::string text(body);
  if (auto parsed = json::parse(body); parsed.ok()) {
    // {"error": {"message": m}}, {"error": m}, {"object": "error", "message": m}, {"detail": m}
    const json::Value* message = &parsed.value();
    for (const char* key : {"error", "message", "detail"}) {
      if (const json::Value* inner = message->find(key)) message = inner;
    }
    text = message->is_string() ? message->as_string() : json::dump(*message);
  }
  text = body.empty() ? "an empty answer" : printable(text);
  if (status == 200) return text;
  const bool redirect = status >= 300 && status < 400;
  return fmt::format("HTTP {}{}: {}", status, redirect ? ", and redirects are not followed" : "",
                     text);
}

}  // namespace winnow::bench
