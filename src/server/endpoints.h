// Every endpoint of the table in routes.cpp, by file.
#pragma once

#include "server/router.h"

namespace winnow::server {

// openai_chat.cpp, openai_completions.cpp, native_generate.cpp
void chat_completions(Api& api, Call& call);
void completions(Api& api, Call& call);
void native_generate(Api& api, Call& call);

// tokenize_routes.cpp
void tokenize(Api& api, Call& call);
void detokenize(Api& api, Call& call);

// model_routes.cpp
void list_models(Api& api, Call& call);
void show_model(Api& api, Call& call);
void model_info(Api& api, Call& call);
void server_info(Api& api, Call& call);

// health_routes.cpp
void health(Api& api, Call& call);
void health_generate(Api& api, Call& call);
void metrics(Api& api, Call& call);

// admin_routes.cpp
void flush_cache(Api& api, Call& call);
void abort_request(Api& api, Call& call);

// What the generating endpoints share: reads the body of a /v1 request (its content type must be
// JSON) or of a native one; answers 400 itself and gives nothing where that fails.
enum class ContentType { kMustBeJson, kAny };
std::optional<json::Value> read_body(Api& api, Call& call, ContentType content_type);
// Answers a request that will not run, and counts it.
void refuse(Api& api, Exchange& exchange, const Status& status);

}  // namespace winnow::server
