// HTTP requests and responses as plain data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::server {

class BodyCharge;

struct Header {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string path;    // percent-decoded, without the query
  std::string query;   // behind '?', as sent
  std::vector<Header> headers;
  std::string body;
  std::shared_ptr<BodyCharge> body_charge = nullptr;  // of the server's memory for bodies

  // The body, which then belongs to the caller.
  std::string take_body();
  // Names are compared without regard to case; nullptr where there is none.
  const std::string* header(std::string_view name) const;
  // Percent-decoded value of ?key=value.
  std::optional<std::string> query_value(std::string_view key) const;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<Header> headers = {};
  bool close = false;  // end the connection after it
};

// "%41b" -> "Ab". A '%' without two hex digits stays as it is.
std::string percent_decode(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace winnow::server
