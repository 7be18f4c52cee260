// A small random checkpoint with tokenizer and chat template, made once for a test program.
#pragma once

#include <string>

namespace winnow::testing {

// Its folder; "" where there is no python3 to make it with.
const std::string& made_model();

}  // namespace winnow::testing
