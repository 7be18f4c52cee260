#include "bench/url.h"

#include <charconv>

namespace winnow::bench {

std::string Url::authority() const {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                     : fmt::format("[{}]:{}", host, port);
}

namespace {

Status bad_url(std::string_view text) {
  return invalid_argument("base-url", "\"{}\" is no URL like http://127.0.0.1:30000", text);
}

bool read_port(std::string_view digits, uint16_t& port) {
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return ec == std::errc() && end == digits.data() + digits.size() && port > 0;
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://")) {
    return invalid_argument("base-url", "{}: https is not spoken here; use the server's http port",
                            text);
  }
  if (!text.starts_with(kScheme)) return bad_url(text);
  std::string_view rest = text.substr(kScheme.size());
  Url url;
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.base = rest.substr(slash);
  while (url.base.ends_with('/')) url.base.pop_back();
  std::string_view host = rest.substr(0, slash);
  if (host.starts_with('[')) {
    const size_t close = host.find(']');
    if (close == host.npos) return bad_url(text);
    url.host = host.substr(1, close - 1);
    host.remove_prefix(close + 1);
    if (!host.empty() && (host[0] != ':' || !read_port(host.substr(1), url.port))) {
      return bad_url(text);
    }
  } else {
    const size_t colon = std::min(host.find(':'), host.size());
    url.host = host.substr(0, colon);
    if (colon < host.size() && !read_port(host.substr(colon + 1), url.port)) return bad_url(text);
  }
  const bool printable = text.find_first_of(" \t\r\n\"") == text.npos;
  if (url.host.empty() || !printable) return bad_url(text);
  return url;
}

}  // namespace winnow::bench
