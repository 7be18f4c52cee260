#include "server/tool_call_parsers.h"

namespace winnow::server {

std::vector<std::string> tool_call_parser_names() {
  return {"glm", "glm45", "glm47", "deepseekv3", "deepseekv31", "deepseekv32", "kimi_k2"};
}

}  // namespace winnow::server
