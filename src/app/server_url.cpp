#include "app/server_url.h"

#include <fmt/format.h>

#include "base/error.h"

namespace winnow::app {

bench::Url server_url(const std::string& base_url, const std::string& host, int64_t port) {
  std::string text = base_url;
  if (text.empty()) {
    const bool whole = host.find("://") != std::string::npos;
    const bool bare_ipv6 = !whole && !host.starts_with('[') && host.find(':') != std::string::npos;
    text = fmt::format("{}{}:{}", whole ? "" : "http://",
                       bare_ipv6 ? fmt::format("[{}]", host) : host, port);
  }
  Result<bench::Url> url = bench::parse_url(text);
  if (!url.ok()) {
    throw_error("{}: {}", base_url.empty() ? "--host" : "--base-url", url.status().message);
  }
  return std::move(url.value());
}

}  // namespace winnow::app
