// simdjson says that a number or a string is bad, but not which one.
#pragma once

#include <string_view>

#include "base/error.h"

namespace winnow::json {

// Of a text in which a number or a string is the first thing wrong: names that value. The message
// goes behind the status's param, as with every Status of parse(). ok() where nothing is found.
Status first_bad_token(std::string_view text);

}  // namespace winnow::json
