// What the server under test serves.
#pragma once

#include <string>

#include "bench/http_message.h"
#include "bench/url.h"
#include "eval/request_body.h"

namespace winnow::eval {

// The name of the model: `/get_model_info`'s for Api::kGenerate, else the first of `/v1/models`.
// Throws Error when the server does not answer as it should, saying how it did.
std::string ask_model_name(const bench::Url& url, const bench::HttpHeaders& headers, Api api);

}  // namespace winnow::eval
