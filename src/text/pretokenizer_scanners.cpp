#include "text/pretokenizer_scanners.h"

#include "text/pretokenizer.h"

namespace winnow::text {
namespace scan {

const char* contraction(const char* p, const char* end) {
  if (*p != '\'' || end - p < 2) return p;
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  const char first = lower(p[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
  if (end - p < 3) return p;
  // U+017F, the long s, is an s without case.
  if (p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
  const char second = lower(p[2]);
  const bool pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                    (first == 'l' && second == 'l');
  return pair ? p + 3 : p;
}

const char* spaces(const ClassCursor& cursor, const char* p, const char* end) {
  const char* after_newline = p;
  const char* last = p;  // start of the run's last character
  const char* q = p;
  while (q != end) {
    const auto c = cursor.at(q);
    if (!(c.flags & kSpace)) break;
    last = q;
    q += c.size;
    if (c.flags & kNewline) after_newline = q;
  }
  if (after_newline != p) return after_newline;
  if (q == end || last == p) return q;
  return last;  // one space is left to the word behind the run
}

const char* digits(const ClassCursor& cursor, const char* p, const char* end, int max) {
  for (int i = 0; i < max && p != end; ++i) {
    const auto c = cursor.at(p);
    if (!(c.flags & kNumber)) break;
    p += c.size;
  }
  return p;
}

const char* symbols(const ClassCursor& cursor, const char* p, const char* end) {
  const char* start = *p == ' ' ? p + 1 : p;
  const char* q = cursor.skip_until(start, end, kWordOrSpace);
  if (q == start) return p;
  while (q != end && (*q == '\r' || *q == '\n')) ++q;
  return q;
}

}  // namespace scan

namespace {

class GlmPreTokenizer final : public PreTokenizer {
 public:
  explicit GlmPreTokenizer(int max_digits) : max_digits_(max_digits) {}

  void split(std::string_view text, size_t base, std::vector<size_t>& ends) const override {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    for (const char* p = begin; p != end;) {
      p = next(p, end);
      ends.push_back(base + static_cast<size_t>(p - begin));
    }
  }

 private:
  const char* next(const char* p, const char* end) const {
    const auto c = cursor_.at(p);
    if (c.flags & kLetter) return cursor_.skip(p + c.size, end, kLetter);
    if (c.flags & kNumber) return scan::digits(cursor_, p, end, max_digits_);
    if (const char* q = scan::contraction(p, end); q != p) return q;
    if (!(c.flags & kNewline) && cursor_.flags(p + c.size, end) & kLetter) {
      return cursor_.skip(p + c.size, end, kLetter);
    }
    if (const char* q = scan::symbols(cursor_, p, end); q != p) return q;
    return scan::spaces(cursor_, p, end);
  }

  ClassCursor cursor_;
  int max_digits_;
};

class DeepSeekPreTokenizer final : public PreTokenizer {
 public:
  void split(std::string_view text, size_t base, std::vector<size_t>& ends) const override {
    Output out{text.data(), base, ends};
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) {
      const uint16_t flags = cursor_.at(p).flags;
      if (flags & kNumber) {
        p = scan::digits(cursor_, p, end, 3);
        out.push(p);
        continue;
      }
      const char* stretch_end = flags & kCjkRange ? cursor_.skip(p, end, kCjkRange)
                                                  : cursor_.skip_until(p, end, kNumber | kCjkRange);
      words(p, stretch_end, out);
      p = stretch_end;
    }
  }

 private:
  static constexpr uint16_t kWordChars = kLetter | kMark;

  struct Output {
    const char* begin;
    size_t base;
    std::vector<size_t>& ends;
    void push(const char* p) { ends.push_back(base + static_cast<size_t>(p - begin)); }
  };

  // The third split. Characters that no alternative takes (control characters, unassigned ones)
  // stay together as a piece of their own.
  void words(const char* p, const char* end, Output& out) const {
    const char* unmatched = p;
    while (p != end) {
      const char* q = match(p, end);
      if (q == p) {
        p += cursor_.at(p).size;
        continue;
      }
      if (unmatched != p) out.push(p);
      out.push(q);
      p = unmatched = q;
    }
    if (unmatched != end) out.push(end);
  }

  // [!-/:-@[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
  // \s*[\r\n]+|\s+(?!\S)|\s+
  const char* match(const char* p, const char* end) const {
    const auto c = cursor_.at(p);
    const char* const rest = p + c.size;
    if (c.flags & kWordChars) return cursor_.skip(rest, end, kWordChars);
    const uint16_t next = cursor_.flags(rest, end);
    if (c.flags & kPunctSymbol) {
      if (c.size == 1 && next & kAsciiLetter) return cursor_.skip(rest, end, kAsciiLetter);
      return punctuation(rest, end);
    }
    if (!(c.flags & kNewline) && next & kWordChars) return cursor_.skip(rest, end, kWordChars);
    if (*p == ' ' && next & kPunctSymbol) return punctuation(rest, end);
    return scan::spaces(cursor_, p, end);
  }

  const char* punctuation(const char* p, const char* end) const {
    p = cursor_.skip(p, end, kPunctSymbol);
    while (p != end && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }

  ClassCursor cursor_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_glm_pretokenizer(int max_digits) {
  return std::make_unique<GlmPreTokenizer>(max_digits);
}

std::unique_ptr<PreTokenizer> make_deepseek_pretokenizer() {
  return std::make_unique<DeepSeekPreTokenizer>();
}

}  // namespace winnow::text
