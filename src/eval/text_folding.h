// Answers are written in any script and by any keyboard; scorers read ASCII.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace winnow::eval {

// Valid UTF-8 with every decimal digit of Unicode as 0-9, and the minus sign and full-width signs
// of numbers as ASCII. Broken bytes become U+FFFD.
std::string with_ascii_digits(std::string_view text);

// 0 to 9 for a decimal digit of any script (Python's \d), else -1.
int digit_value(uint32_t code_point);

// Python's str.isspace() for one character, which is the \s of its re.
bool is_python_space(uint32_t code_point);

std::string lower_ascii(std::string_view text);
// Without ASCII white space at both ends.
std::string_view trimmed(std::string_view text);
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace winnow::eval
