// Which server a client command talks to, from the options that all of them have.
#pragma once

#include <cstdint>
#include <string>

#include "bench/url.h"

namespace winnow::app {

// base_url, or http://host:port where it is empty; host may be an IPv6 address, and have http:// in
// front. Throws Error naming the option.
bench::Url server_url(const std::string& base_url, const std::string& host, int64_t port);

}  // namespace winnow::app
