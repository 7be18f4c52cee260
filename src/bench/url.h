// http://host:port/base, as --base-url takes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace winnow::bench {

struct Url {
  std::string host;  // a name, an IPv4 address or an IPv6 address without its brackets
  uint16_t port = 80;
  std::string base;  // "" or "/path" without a slash at its end: goes in front of every target

  // "host:port", as the Host header wants it.
  std::string authority() const;
  std::string text() const { return "http://" + authority() + base; }
};

// kInvalidArgument for anything but http, and for what is no URL.
Result<Url> parse_url(std::string_view text);

}  // namespace winnow::bench
