#include "server/tool_call_split.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"

namespace winnow::server {

namespace {

// FNV-1a, its bits then mixed (splitmix64's last steps): texts that differ in one digit look apart.
uint64_t hash_of(std::string_view text, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325U ^ seed;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31);
}

void append(text::ToolCallDeltas& all, text::ToolCallDeltas more) {
  all.content += more.content;
  for (text::ToolCallDelta& call : more.calls) all.calls.push_back(std::move(call));
}

}  // namespace

ToolCallSplit::ToolCallSplit(std::string_view parser_name, const json::Value& tools, bool parallel)
    : parser_(text::make_tool_call_parser(parser_name, tools)), parallel_(parallel) {
  WINNOW_CHECK(parser_ != nullptr, "tool-call parser {}", parser_name);
}

text::ToolCallDeltas ToolCallSplit::append(std::string content, bool finished) {
  if (parser_ == nullptr) return {.content = std::move(content), .calls = {}};
  text::ToolCallDeltas deltas = parser_->append(content);
  if (finished) server::append(deltas, parser_->finish());
  if (!parallel_) {
    std::erase_if(deltas.calls, [](const text::ToolCallDelta& call) { return call.idx > 0; });
  }
  any_call_ = any_call_ || !deltas.calls.empty();
  return deltas;
}

std::string tool_call_id(std::string_view request_id, int32_t choice_idx, int32_t call_idx) {
  const std::string place = fmt::format("{}/{}/{}", request_id, choice_idx, call_idx);
  return fmt::format("call_{:016x}{:08x}", hash_of(place, 0),
                     static_cast<uint32_t>(hash_of(place, 0x9e3779b97f4a7c15U)));
}

}  // namespace winnow::server
