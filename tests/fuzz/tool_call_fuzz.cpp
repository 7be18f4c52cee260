// First byte: seed of the cuts. The rest in pieces must split as it does
// whole.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_call_parser.h"

using namespace winnow;
using namespace winnow::text;

namespace {

struct Joined {
  std::string content;
  std::vector<ToolCallDelta> calls;

  void add(const ToolCallDeltas& deltas) {
    content += deltas.content;
    for (const ToolCallDelta& call : deltas.calls) {
      if (!call.name.empty()) {
        if (static_cast<size_t>(call.idx) != calls.size()) abort();
        calls.push_back(call);
      } else {
        calls.at(static_cast<size_t>(call.idx)).arguments += call.arguments;
      }
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static const json::Value tools = json::parse(R"([{"function":{"name":"f","parameters":{
    "properties":{"s":{"type":"string"},"i":{"type":"integer"},"o":{"type":"object"}}}}}])")
                                       .value();
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Joined whole;
  const auto one = make_tool_call_parser("glm47", tools);
  whole.add(one->append(text));
  whole.add(one->finish());
  Joined pieces;
  const auto parser = make_tool_call_parser("glm47", tools);
  uint32_t random = data[0] + 1u;
  while (!text.empty()) {
    random = random * 1664525u + 1013904223u;
    const size_t n = std::min<size_t>(text.size(), 1 + (random >> 24) % 12);
    pieces.add(parser->append(text.substr(0, n)));
    text.remove_prefix(n);
  }
  pieces.add(parser->finish());
  if (pieces.content != whole.content || pieces.calls.size() != whole.calls.size()) abort();
  for (size_t i = 0; i < whole.calls.size(); ++i) {
    if (pieces.calls[i].name != whole.calls[i].name) abort();
    if (pieces.calls[i].arguments != whole.calls[i].arguments) abort();
  }
  return 0;
}
