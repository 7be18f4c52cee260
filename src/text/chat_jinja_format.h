// Chats by a Jinja template.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat_format.h"

namespace winnow::text {

struct ChatTemplate {
  std::string source;
  std::string tool_source;  // used instead when a request has tools; "" for none
  // bos_token and the like, by name: variables of the template.
  std::vector<std::pair<std::string, std::string>> special_tokens;
};

// name: what error messages call the template. Throws Error when it does not parse.
std::unique_ptr<ChatFormat> make_jinja_format(const ChatTemplate& chat_template,
                                              std::string_view name);

// Of DeepSeek-V3.1, for checkpoints of that family that come without one. Written for Winnow.
extern const char* const kDeepseekV31Template;

}  // namespace winnow::text
