// Cuts a template into tokens, with Jinja's whitespace control as chat templates are rendered:
// trim_blocks and lstrip_blocks on, the last newline of the template dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::text::jinja {

struct Token {
  enum class Kind {
    kText,  // template text between tags
    kBlockBegin,
    kBlockEnd,
    kVariableBegin,
    kVariableEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind = Kind::kEnd;
  int line = 1;
  std::string text;  // strings unescaped, operators and names as written
  int64_t integer = 0;
  double number = 0;

  bool is_operator(std::string_view op) const { return kind == Kind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == Kind::kName && text == name; }
};

// The last token is kEnd. Throws TemplateError kSyntax with its line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace winnow::text::jinja
