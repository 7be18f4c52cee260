// The names that --tool-call-parser takes, and where parsers of tool calls plug in: a row's parser
// gets the content that the reasoning parser leaves and gives back content and calls. None is
// there yet, so calls stay in the content as the model wrote them.
#pragma once

#include <string>
#include <vector>

namespace winnow::server {

std::vector<std::string> tool_call_parser_names();

}  // namespace winnow::server
