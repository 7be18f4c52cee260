#include "text/jinja_text.h"

#include <clocale>
#include <cwchar>
#include <cwctype>

#include <algorithm>

#include "text/jinja_value.h"

namespace winnow::text::jinja {

bool MarkedText::plain_at(size_t byte) const {
  auto after = std::upper_bound(plain_.begin(), plain_.end(), byte,
                                [](size_t at, const Run& run) { return at < run.begin; });
  return after != plain_.begin() && byte < std::prev(after)->end;
}

void check_text_size(size_t bytes, size_t copies) {
  if (bytes > 0 && copies > kMaxTextBytes / bytes) {
    fail(TemplateError::Kind::kLimit,
         fmt::format("a text would grow beyond {} bytes", kMaxTextBytes));
  }
}

void MarkedText::grow_check(size_t more) const { check_text_size(bytes_.size() + more, 1); }

void MarkedText::append(std::string_view text, bool plain) {
  if (text.empty()) return;
  grow_check(text.size());
  const size_t begin = bytes_.size();
  bytes_ += text;
  if (!plain) return;
  if (!plain_.empty() && plain_.back().end == begin) {
    plain_.back().end = bytes_.size();
  } else {
    plain_.push_back({begin, bytes_.size()});
  }
}

void MarkedText::append(const MarkedText& other) { append(other, 0, other.size()); }

void MarkedText::append(const MarkedText& other, size_t begin, size_t end) {
  if (begin >= end) return;
  grow_check(end - begin);
  const size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  auto run = std::upper_bound(other.plain_.begin(), other.plain_.end(), begin,
                              [](size_t at, const Run& r) { return at < r.end; });
  for (; run != other.plain_.end() && run->begin < end; ++run) {
    const size_t from = base + std::max(run->begin, begin) - begin;
    const size_t to = base + std::min(run->end, end) - begin;
    if (!plain_.empty() && plain_.back().end == from) {
      plain_.back().end = to;
    } else {
      plain_.push_back({from, to});
    }
  }
}

MarkedText MarkedText::substr(size_t begin, size_t end) const {
  MarkedText out;
  out.append(*this, begin, end);
  return out;
}

namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

size_t expected_bytes(unsigned char lead) {
  if (lead >= 0xF0 && lead < 0xF8) return 4;
  if (lead >= 0xE0) return lead < 0xF0 ? 3 : 1;
  return lead >= 0xC0 ? 2 : 1;
}

// Debian's C library always has C.UTF-8; without it only ASCII is mapped.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

bool contains_character(std::string_view set, char32_t character) {
  for (size_t at = 0; at < set.size(); at += character_bytes(set, at)) {
    if (character_at(set, at) == character) return true;
  }
  return false;
}

}  // namespace

size_t character_bytes(std::string_view text, size_t at) {
  const size_t want = expected_bytes(static_cast<unsigned char>(text[at]));
  size_t have = 1;
  while (have < want && at + have < text.size() && is_continuation(text[at + have])) ++have;
  return have == want ? want : 1;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += character_bytes(text, at)) ++count;
  return count;
}

char32_t character_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = character_bytes(text, at);
  if (length == 1) return lead < 0x80 ? lead : U'\uFFFD';
  char32_t value = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    value = value << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  }
  return value;
}

void append_character(std::string& out, char32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = U'\uFFFD';
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | c >> 6));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | c >> 12));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | c >> 18));
    out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

MarkedText::Run stripped_range(std::string_view text,
                               bool left,
                               bool right,
                               const std::string* strip_set) {
  auto strips = [&](char32_t c) {
    return strip_set ? contains_character(*strip_set, c) : is_space(c);
  };
  size_t begin = 0;
  size_t end = text.size();
  while (left && begin < end && strips(character_at(text, begin))) {
    begin += character_bytes(text, begin);
  }
  while (right && end > begin) {
    size_t last = end - 1;
    while (last > begin && end - last < 4 && is_continuation(text[last])) --last;
    if (last + character_bytes(text, last) != end) last = end - 1;
    if (!strips(character_at(text, last))) break;
    end = last;
  }
  return {begin, end};
}

char32_t to_upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return unicode_locale() ? towupper_l(static_cast<wint_t>(c), unicode_locale()) : c;
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return unicode_locale() ? towlower_l(static_cast<wint_t>(c), unicode_locale()) : c;
}

bool is_alpha(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return unicode_locale() && iswalpha_l(static_cast<wint_t>(c), unicode_locale());
}

}  // namespace winnow::text::jinja
