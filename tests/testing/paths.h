// Where the tests' data lies.
#pragma once

#include <string>

namespace winnow::testing {

// tests/data/<name>
std::string data_path(const std::string& name);

}  // namespace winnow::testing
