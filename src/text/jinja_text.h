// Text that remembers which of its bytes are somebody's content and which the template wrote
// itself (fault B88). Every operation of the template engine carries the marks along.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::text::jinja {

// No text grows beyond this, whatever a template does with it.
inline constexpr size_t kMaxTextBytes = size_t{32} << 20;

class MarkedText {
 public:
  struct Run {
    size_t begin = 0;  // bytes
    size_t end = 0;
  };

  MarkedText() = default;
  explicit MarkedText(std::string_view text, bool plain = false) { append(text, plain); }

  const std::string& str() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // The stretches that are content: ascending, not empty, never touching each other.
  const std::vector<Run>& plain_runs() const { return plain_; }
  bool plain_at(size_t byte) const;

  // Throws TemplateError kLimit beyond kMaxTextBytes, as do all that build text.
  void append(std::string_view text, bool plain);
  void append(const MarkedText& other);
  // Bytes [begin, end) of other.
  void append(const MarkedText& other, size_t begin, size_t end);
  MarkedText substr(size_t begin, size_t end) const;

 private:
  void grow_check(size_t more) const;

  std::string bytes_;
  std::vector<Run> plain_;
};

// Throws kLimit when so many copies of so many bytes are beyond kMaxTextBytes.
void check_text_size(size_t bytes, size_t copies);

using TextPtr = std::shared_ptr<const MarkedText>;

// Characters are UTF-8 code points. Bytes that are no UTF-8 count as one character each.
size_t character_bytes(std::string_view text, size_t at);
size_t count_characters(std::string_view text);
char32_t character_at(std::string_view text, size_t at);
void append_character(std::string& out, char32_t character);

// Python's str.isspace for one character.
bool is_space(char32_t character);
// The range that is left when spaces (or any of the characters of strip_set) are cut off.
MarkedText::Run stripped_range(std::string_view text,
                               bool left,
                               bool right,
                               const std::string* strip_set = nullptr);

// One-to-one case mapping of all of Unicode (so 'ß' stays as it is in upper case).
char32_t to_upper(char32_t character);
char32_t to_lower(char32_t character);
bool is_alpha(char32_t character);

// Applies map(character, previous character or 0) to each character, marks kept.
template <typename Map>
MarkedText map_characters(const MarkedText& text, Map map) {
  MarkedText out;
  char32_t previous = 0;
  std::string encoded;
  const std::string& bytes = text.str();
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = character_bytes(bytes, at);
    const char32_t character = character_at(bytes, at);
    encoded.clear();
    append_character(encoded, map(character, previous));
    out.append(encoded, text.plain_at(at));
    previous = character;
    at += length;
  }
  return out;
}

}  // namespace winnow::text::jinja
