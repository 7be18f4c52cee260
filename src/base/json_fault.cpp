#include "base/json_fault.h"

#include <simdjson.h>

#include <algorithm>
#include <string>
#include <vector>

namespace winnow::json {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kDigits = "0123456789";
constexpr size_t kMaxShown = 40;

// Takes a run of digits off the front; false where there is none.
bool take_digits(std::string_view& text) {
  const size_t length = std::min(text.find_first_not_of(kDigits), text.size());
  text.remove_prefix(length);
  return length > 0;
}

bool take_one_of(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text.front()) == characters.npos) return false;
  text.remove_prefix(1);
  return true;
}

// "beyond 64 signed bits", or what else is wrong with a number that was refused.
std::string_view what_is_wrong_with(std::string_view number) {
  take_one_of(number, "-");
  const std::string_view digits = number;
  bool sound = take_digits(number) && (digits.front() != '0' || digits.size() == 1 ||
                                       kDigits.find(digits[1]) == kDigits.npos);
  if (sound && number.empty()) return "beyond 64 signed bits";
  if (sound && take_one_of(number, ".")) sound = take_digits(number);
  if (sound && take_one_of(number, "eE")) {
    take_one_of(number, "+-");
    sound = take_digits(number);
  }
  return sound && number.empty() ? "beyond the range of doubles" : "no JSON number";
}

// Walks a text whose structure is sound up to the bad token.
class Walk {
 public:
  explicit Walk(std::string_view text) : rest_(text) {}

  Status run() {
    while (skip(std::min(rest_.find_first_not_of(kSpace), rest_.size())), !rest_.empty()) {
      const char c = rest_.front();
      if (c == '"') {
        if (Status s = string(); !s.ok()) return s;
      } else if (kPunctuation.find(c) == kPunctuation.npos) {
        if (Status s = literal(); !s.ok()) return s;
      } else {
        punctuation(c);
        skip(1);
      }
    }
    return {};
  }

 private:
  static constexpr std::string_view kPunctuation = "{}[],:";

  struct Level {
    bool is_object = false;
    bool key_is_next = false;
    std::string_view key;  // as it is written
    size_t index = 0;
  };

  void skip(size_t bytes) { rest_.remove_prefix(bytes); }

  void punctuation(char c) {
    if (c == '{' || c == '[') {
      levels_.push_back({.is_object = c == '{', .key_is_next = c == '{', .key = {}});
    } else if (!levels_.empty() && (c == '}' || c == ']')) {
      levels_.pop_back();
    } else if (!levels_.empty() && c == ',') {
      levels_.back().key_is_next = levels_.back().is_object;
      ++levels_.back().index;
    }
  }

  Status string() {
    size_t end = 1;
    bool escapes = false;
    while (end < rest_.size() && rest_[end] != '"') {
      escapes |= rest_[end] == '\\';
      end += rest_[end] == '\\' ? 2 : 1;
    }
    const std::string_view token = rest_.substr(0, std::min(end + 1, rest_.size()));
    skip(token.size());
    const bool is_key = !levels_.empty() && levels_.back().key_is_next;
    if (is_key) levels_.back() = {.is_object = true, .key = token.substr(1, token.size() - 2)};
    if (!escapes || parses(token)) return {};
    return invalid_argument(path(), "{} a bad escape, or half of a surrogate pair",
                            is_key ? "is a key with" : "has");
  }

  Status literal() {
    const size_t end = rest_.find_first_of(" \t\r\n{}[],:\"");
    const std::string_view token = rest_.substr(0, end);
    skip(token.size());
    constexpr size_t kSafeDigits = 18;  // any number of so many is an int64
    const bool short_integer = token.find_first_not_of(kDigits) == token.npos &&
                               token.front() != '0' && token.size() <= kSafeDigits;
    const bool number = token.front() == '-' || kDigits.find(token.front()) != kDigits.npos;
    if (!number || short_integer || parses(token)) return {};
    return invalid_argument(path(), "is {}{}, {}", token.substr(0, kMaxShown),
                            token.size() > kMaxShown ? "..." : "", what_is_wrong_with(token));
  }

  bool parses(std::string_view token) {
    return parser_.parse(token.data(), token.size()).error() == simdjson::SUCCESS;
  }

  std::string path() const {
    std::string out;
    for (const Level& level : levels_) {
      if (!level.is_object) {
        out += fmt::format("[{}]", level.index);
      } else {
        if (!out.empty()) out += '.';
        out += level.key;
      }
    }
    return out;
  }

  std::string_view rest_;
  std::vector<Level> levels_;
  simdjson::dom::parser parser_;
};

}  // namespace

Status first_bad_token(std::string_view text) { return Walk(text).run(); }

}  // namespace winnow::json
