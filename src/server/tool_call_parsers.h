// The names that --tool-call-parser takes. No parser is there yet: calls stay in the content as the
// model wrote them.
#pragma once

#include <string>
#include <vector>

namespace winnow::server {

std::vector<std::string> tool_call_parser_names();

}  // namespace winnow::server
