#include "text/tool_call_glm.h"

#include <algorithm>
#include <initializer_list>

#include "text/tool_arguments.h"

namespace winnow::text {

namespace {

constexpr std::string_view kCall = "<tool_call>";
constexpr std::string_view kCallEnd = "</tool_call>";
constexpr std::string_view kKey = "<arg_key>";
constexpr std::string_view kKeyEnd = "</arg_key>";
constexpr std::string_view kValue = "<arg_value>";
constexpr std::string_view kValueEnd = "</arg_value>";
constexpr size_t kLongestTag = kCallEnd.size();
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// GLM-4.5 writes a line break behind the name, at times as the two characters of its escape.
std::string_view name_of(std::string_view text) {
  text = trimmed(text);
  if (text.ends_with("\\n")) text.remove_suffix(2);
  return trimmed(text);
}

class GlmToolCallParser final : public ToolCallParser {
 public:
  explicit GlmToolCallParser(const json::Value& tools) : tools_(tools) {}

  ToolCallDeltas append(std::string_view text) override {
    ToolCallDeltas out;
    held_ += text;
    while (step(out)) {
    }
    return out;
  }

  ToolCallDeltas finish() override {
    ToolCallDeltas out;
    if (place_ == Place::kContent) {
      // Blanks around calls are the format's.
      if (num_calls_ == 0 || !trimmed(held_).empty()) out.content = held_;
    } else if (place_ == Place::kName) {
      out.content = blanks_ + std::string(kCall) + held_;
    }
    held_.clear();
    return out;
  }

 private:
  enum class Place {
    kContent,
    kName,
    kBetween,      // arguments: a key or the end of the call comes
    kInKey,        // behind <arg_key>
    kBeforeValue,  // behind </arg_key>
    kText,         // of a plain string, which streams
    kInValue,      // of anything else, which is understood as a whole
  };

  struct Tag {
    size_t at = std::string::npos;
    std::string_view text;
  };

  // False: more text is needed.
  bool step(ToolCallDeltas& out) {
    switch (place_) {
      case Place::kContent:
        return content(out);
      case Place::kName:
        return name(out);
      case Place::kBetween:
        return between(out);
      case Place::kInKey:
        return key();
      case Place::kBeforeValue:
        return before_value(out);
      case Place::kText:
        return string_value(out);
      case Place::kInValue:
        return value(out);
    }
    return false;
  }

  // What has been searched in vain is not searched again: a long value comes in many pieces.
  Tag first_of(std::initializer_list<std::string_view> tags) {
    Tag first;
    for (const std::string_view tag : tags) {
      const size_t at = held_.find(tag, searched_);
      if (at < first.at) first = {at, tag};
    }
    if (first.text.empty() && held_.size() >= kLongestTag) {
      searched_ = held_.size() - kLongestTag + 1;
    }
    return first;
  }

  void drop(size_t count) {
    held_.erase(0, count);
    searched_ = 0;
  }

  // Bytes at the end of held_ that may become one of these tags.
  size_t held_tail(std::initializer_list<std::string_view> tags) const {
    size_t longest = 0;
    for (const std::string_view tag : tags) {
      for (size_t n = std::min(tag.size() - 1, held_.size()); n > longest; --n) {
        if (held_.compare(held_.size() - n, n, tag, 0, n) == 0) longest = n;
      }
    }
    return longest;
  }

  void drop_through(const Tag& tag) { drop(tag.at + tag.text.size()); }

  bool content(ToolCallDeltas& out) {
    const Tag tag = first_of({kCall, kCallEnd});
    const size_t ready = tag.text.empty() ? held_.size() - held_tail({kCall, kCallEnd}) : tag.at;
    const std::string_view text = std::string_view(held_).substr(0, ready);
    // Blanks wait for what follows: in front of a call they are the format's.
    const size_t last = text.find_last_not_of(kBlanks);
    size_t used = last == std::string_view::npos ? 0 : last + 1;
    std::string_view shown = text.substr(0, used);
    if (behind_call_ && !shown.empty()) {
      shown.remove_prefix(shown.find_first_not_of(kBlanks));
      behind_call_ = false;
    }
    out.content += shown;
    if (tag.text.empty()) {
      drop(used);
      return false;
    }
    blanks_ = std::string(text.substr(used));
    drop_through(tag);
    if (tag.text == kCall) {
      place_ = Place::kName;
    } else {
      held_.insert(0, blanks_);  // a stray end of a call is no text
    }
    return true;
  }

  bool name(ToolCallDeltas& out) {
    const Tag tag = first_of({kKey, kCallEnd, kCall});
    if (tag.text.empty()) return false;
    const std::string found(name_of(std::string_view(held_).substr(0, tag.at)));
    if (found.empty() || tag.text == kCall) {  // no call after all
      const size_t end = tag.at + (tag.text == kCall ? 0 : tag.text.size());
      out.content += blanks_ + std::string(kCall) + held_.substr(0, end);
      drop(end);
      place_ = Place::kContent;
      return true;
    }
    parameters_ = find_tool_parameters(tools_, found);
    num_arguments_ = 0;
    out.calls.push_back({.idx = num_calls_++, .name = found, .arguments = ""});
    place_ = Place::kBetween;
    drop(tag.at);
    return true;
  }

  void add(ToolCallDeltas& out, std::string_view arguments) {
    if (arguments.empty()) return;
    const int32_t idx = num_calls_ - 1;
    if (out.calls.empty() || out.calls.back().idx != idx) {
      out.calls.push_back({.idx = idx, .name = "", .arguments = ""});
    }
    out.calls.back().arguments += arguments;
  }

  bool between(ToolCallDeltas& out) {
    const Tag tag = first_of({kKey, kCallEnd, kCall});
    if (tag.text.empty()) return false;
    if (tag.text == kKey) {
      drop_through(tag);
      place_ = Place::kInKey;
      return true;
    }
    // A call that begins before the one in front of it has ended ends that one.
    drop(tag.at + (tag.text == kCallEnd ? tag.text.size() : 0));
    add(out, num_arguments_ == 0 ? "{}" : "}");
    place_ = Place::kContent;
    behind_call_ = true;
    return true;
  }

  bool key() {
    const Tag tag = first_of({kKeyEnd});
    if (tag.text.empty()) return false;
    key_ = trimmed(std::string_view(held_).substr(0, tag.at));
    drop_through(tag);
    place_ = Place::kBeforeValue;
    return true;
  }

  bool before_value(ToolCallDeltas& out) {
    const Tag tag = first_of({kValue, kKey, kCallEnd});
    if (tag.text.empty()) return false;
    if (tag.text != kValue) {  // a key without a value is left out
      drop(tag.at);
      place_ = Place::kBetween;
      return true;
    }
    drop_through(tag);
    std::string head = num_arguments_++ == 0 ? "{" : ", ";
    json::append_string(head, key_);
    head += ": ";
    kinds_ = argument_kinds(parameters_, key_);
    if (kinds_ == kStringKind) head += '"';
    add(out, head);
    place_ = kinds_ == kStringKind ? Place::kText : Place::kInValue;
    return true;
  }

  bool string_value(ToolCallDeltas& out) {
    const Tag tag = first_of({kValueEnd});
    const size_t ready = tag.text.empty() ? held_.size() - held_tail({kValueEnd}) : tag.at;
    std::string escaped;
    json::append_string(escaped, std::string_view(held_).substr(0, ready));
    add(out, std::string_view(escaped).substr(1, escaped.size() - 2));
    if (tag.text.empty()) {
      drop(ready);
      return false;
    }
    add(out, "\"");
    drop_through(tag);
    place_ = Place::kBetween;
    return true;
  }

  bool value(ToolCallDeltas& out) {
    const Tag tag = first_of({kValueEnd});
    if (tag.text.empty()) return false;
    add(out, argument_json(std::string_view(held_).substr(0, tag.at), kinds_));
    drop_through(tag);
    place_ = Place::kBetween;
    return true;
  }

  const json::Value& tools_;
  Place place_ = Place::kContent;
  std::string held_;
  size_t searched_ = 0;  // no tag begins in front of this place in held_
  std::string blanks_;   // in front of the call that has just begun
  std::string key_;
  const json::Value* parameters_ = nullptr;  // of the call's tool
  uint8_t kinds_ = kAnyKind;
  int32_t num_calls_ = 0;
  int num_arguments_ = 0;
  bool behind_call_ = false;
};

}  // namespace

std::unique_ptr<ToolCallParser> make_glm_tool_call_parser(const json::Value& tools) {
  return std::make_unique<GlmToolCallParser>(tools);
}

}  // namespace winnow::text
