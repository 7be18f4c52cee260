// Any bytes as JSON: refused, or a value that survives printing and reading.
#include <cstdint>

#include "base/error.h"
#include "base/json.h"
#include "server/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace winnow;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<json::Value> parsed = json::parse(text, {.max_depth = server::kMaxJsonDepth});
  if (!parsed.ok()) return 0;
  for (const json::Style style : {json::Style::kCompact, json::Style::kPython}) {
    const std::string printed = json::dump(parsed.value(), style);
    const Result<json::Value> again = json::parse(printed, {.max_depth = server::kMaxJsonDepth});
    WINNOW_CHECK(again.ok(), "{}", printed);
    WINNOW_CHECK(again.value() == parsed.value(), "{}", printed);
  }
  return 0;
}
