#include "testing/paths.h"

namespace winnow::testing {

std::string data_path(const std::string& name) {
  return std::string(WINNOW_TEST_DATA) + "/" + name;
}

}  // namespace winnow::testing
