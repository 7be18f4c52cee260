// A server without a reasoning parser leaves the thinking in the answer. It is no answer.
#pragma once

#include <string_view>

namespace winnow::eval {

// The text behind the last "</think>"; what stands before a "<think>" that never ends.
inline std::string_view without_thinking(std::string_view text) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = text.rfind(kEnd);
  if (end != std::string_view::npos) return text.substr(end + kEnd.size());
  return text.substr(0, text.find("<think>"));
}

}  // namespace winnow::eval
