// First byte: parser and start; second: seed of the cuts. The rest in pieces must split as it does
// whole.
#include <cstdlib>
#include <string_view>

#include "text/reasoning_parser.h"

using namespace winnow::text;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const auto names = reasoning_parser_names();
  const std::string& name = names[data[0] % names.size()];
  const ReasoningStart start{.prompt = data[0] & 128 ? "<think>" : "</think>"};
  std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  auto whole = make_reasoning_parser(name, start);
  ReasoningDelta expected = whole->append(text);
  const ReasoningDelta tail = whole->finish();
  expected.reasoning += tail.reasoning;
  expected.content += tail.content;
  auto parser = make_reasoning_parser(name, start);
  ReasoningDelta got;
  auto add = [&](const ReasoningDelta& delta) {
    got.reasoning += delta.reasoning;
    got.content += delta.content;
  };
  uint32_t random = data[1] + 1u;
  while (!text.empty()) {
    random = random * 1664525u + 1013904223u;
    const size_t n = std::min<size_t>(text.size(), 1 + (random >> 24) % 12);
    add(parser->append(text.substr(0, n)));
    text.remove_prefix(n);
  }
  add(parser->finish());
  if (got.reasoning != expected.reasoning || got.content != expected.content) abort();
  return 0;
}
