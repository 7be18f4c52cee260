// What a client sends and gets back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/url.h"

namespace winnow::bench {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "POST";
  std::string target;  // "/generate"; the URL's base goes in front
  std::string body;    // JSON, where there is one
};

struct HttpReply {
  int status = 0;
  std::string content_type;
  std::string body;

  bool ok() const { return status == 200; }
};

// The request's bytes. close: the server is to close the connection behind its answer.
std::string request_bytes(const Url& url,
                          const HttpRequest& request,
                          const HttpHeaders& headers,
                          bool close);

// "Bearer $OPENAI_API_KEY", else $API_KEY as it is, as the Python tools send it; or nothing.
HttpHeaders authorization_from_environment();

// What a server sent, fit for a terminal and for JSON: UTF-8 without control characters, its
// beginning where it is long.
std::string printable(std::string_view text);

// One line for people: "HTTP 400: the message" with the error text of any of the servers' forms.
std::string describe_failure(int status, std::string_view body);

}  // namespace winnow::bench
