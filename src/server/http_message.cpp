#include "server/http_message.h"

#include <algorithm>
#include <utility>

#include "server/body_budget.h"

namespace winnow::server {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
        hex_value(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::string HttpRequest::take_body() {
  body_charge.reset();
  return std::exchange(body, {});
}

const std::string* HttpRequest::header(std::string_view name) const {
  for (const Header& h : headers) {
    if (equal_ignoring_case(h.name, name)) return &h.value;
  }
  return nullptr;
}

std::optional<std::string> HttpRequest::query_value(std::string_view key) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t eq = std::min(pair.find('='), pair.size());
    if (percent_decode(pair.substr(0, eq)) == key) {
      return percent_decode(pair.substr(std::min(eq + 1, pair.size())));
    }
  }
  return std::nullopt;
}

}  // namespace winnow::server
