#include "text/reasoning_think.h"

#include <algorithm>
#include <array>

namespace winnow::text {

namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

class ThinkParser final : public ReasoningParser {
 public:
  ThinkParser(std::string_view tool_marker, bool inside)
      : tool_marker_(tool_marker), place_(inside ? Place::kReasoning : Place::kBefore) {}

  ReasoningDelta append(std::string_view text) override {
    ReasoningDelta delta;
    held_ += text;
    while (take_tag(delta)) {
    }
    if (place_ == Place::kContent) {
      delta.content += held_;
      held_.clear();
      return delta;
    }
    const size_t kept = held_tail();
    emit(std::string_view(held_).substr(0, held_.size() - kept), delta);
    held_.erase(0, held_.size() - kept);
    return delta;
  }

  ReasoningDelta finish() override {
    ReasoningDelta delta;
    emit(held_, delta);
    held_.clear();
    return delta;
  }

  bool in_reasoning() const override { return place_ == Place::kReasoning; }

 private:
  enum class Place {
    kBefore,  // nothing but blanks yet: <think> may still come
    kReasoning,
    kContent,
  };

  void emit(std::string_view text, ReasoningDelta& delta) {
    (place_ == Place::kReasoning ? delta.reasoning : delta.content) += text;
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
    blank_ = false;
    if (place_ == Place::kBefore) place_ = Place::kContent;
  }

  // The tags that mean something here; "" for none.
  std::array<std::string_view, 3> tags() const {
    switch (place_) {
      case Place::kBefore:
        return {kOpen, "", ""};
      case Place::kReasoning:
        return {kClose, tool_marker_, blank_ ? kOpen : ""};
      case Place::kContent:
        break;
    }
    return {};
  }

  // Handles the first tag in held_ with what stands in front of it. False where there is none.
  bool take_tag(ReasoningDelta& delta) {
    size_t first = std::string::npos;
    std::string_view found;
    for (std::string_view tag : tags()) {
      if (tag.empty()) continue;
      const size_t at = held_.find(tag);
      if (at < first) {
        first = at;
        found = tag;
      }
    }
    if (found.empty()) return false;
    const std::string before = held_.substr(0, first);
    // <think> counts only with nothing but blanks in front of it.
    if (found == kOpen && before.find_first_not_of(" \t\r\n") != std::string::npos) {
      emit(before, delta);
      held_.erase(0, first);
      return place_ == Place::kReasoning;
    }
    emit(before, delta);
    held_.erase(0, first + (found == tool_marker_ ? 0 : found.size()));
    if (found == kOpen) {
      place_ = Place::kReasoning;
    } else {
      place_ = Place::kContent;
    }
    return place_ == Place::kReasoning;
  }

  // Bytes at the end of held_ that are a proper prefix of a tag.
  size_t held_tail() const {
    size_t longest = 0;
    for (std::string_view tag : tags()) {
      if (tag.empty()) continue;
      for (size_t n = std::min(tag.size() - 1, held_.size()); n > longest; --n) {
        if (held_.compare(held_.size() - n, n, tag, 0, n) == 0) longest = n;
      }
    }
    return longest;
  }

  std::string_view tool_marker_;
  Place place_;
  bool blank_ = true;  // the reasoning has nothing but blanks yet
  std::string held_;
};

bool starts_inside(const ThinkStyle& style, const ReasoningStart& start) {
  const size_t open = start.prompt.rfind(kOpen);
  const size_t close = start.prompt.rfind(kClose);
  if (open != std::string_view::npos || close != std::string_view::npos) {
    return open != std::string_view::npos && (close == std::string_view::npos || open > close);
  }
  if (!start.prompt.empty()) return style.untagged_prompt_thinks;
  const json::Value* given = start.chat_template_kwargs && !style.switch_name.empty()
                                 ? start.chat_template_kwargs->find(style.switch_name)
                                 : nullptr;
  return given && given->is_bool() ? given->as_bool() : style.thinks_by_default;
}

}  // namespace

std::unique_ptr<ReasoningParser> make_think_parser(const ThinkStyle& style,
                                                   const ReasoningStart& start) {
  return std::make_unique<ThinkParser>(style.tool_marker, starts_inside(style, start));
}

}  // namespace winnow::text
