#include "eval/choice_answer.h"

#include "eval/boxed.h"
#include "eval/text_folding.h"
#include "eval/thinking.h"
#include "text/unicode_utf8.h"

namespace winnow::eval {
namespace {

bool is_choice(char c) { return (c >= 'A' && c <= 'D') || (c >= 'a' && c <= 'd'); }
char upper(char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Both at the first character behind what they skip. text is valid UTF-8.
size_t skip_python_spaces(std::string_view text, size_t at) {
  while (at < text.size()) {
    const text::CodePoint c = text::decode_trusted(text.data() + at);
    if (!is_python_space(c.value)) break;
    at += c.size;
  }
  return at;
}

// "answer" without regard to case; the long s folds to s as well. 0 where it does not stand at at.
size_t answer_word_size(std::string_view text, size_t at) {
  constexpr std::string_view kLongS = "\xC5\xBF";
  size_t i = at;
  for (const char wanted : std::string_view("answer")) {
    if (wanted == 's' && text.substr(i).starts_with(kLongS)) {
      i += kLongS.size();
    } else if (i < text.size() && (text[i] | 0x20) == wanted) {
      ++i;
    } else {
      return 0;
    }
  }
  return i - at;
}

std::optional<char> letter_behind(std::string_view text, size_t at) {
  at = skip_python_spaces(text, at);
  if (at == text.size() || text[at] != ':') return std::nullopt;
  at = skip_python_spaces(text, at + 1);
  if (at == text.size() || !is_choice(text[at])) return std::nullopt;
  return text[at];
}

// The letter at the text's start, decorations around it allowed, no word going on behind it.
std::optional<char> decorated_letter(std::string_view text) {
  for (const std::string_view command : {"\\boxed", "\\text", "\\textbf", "\\mathrm", "\\mathbf"}) {
    const size_t first = text.find_first_not_of(" \t*_$({[");
    if (first != std::string_view::npos && text.substr(first).starts_with(command)) {
      const std::string_view rest = text.substr(first + command.size());
      if (rest.starts_with('{')) return decorated_letter(rest);
    }
  }
  const size_t at = text.find_first_not_of(" \t\r\n*_$({[\"'`");
  if (at == std::string_view::npos || !is_choice(text[at])) return std::nullopt;
  if (at + 1 < text.size() && is_word(text[at + 1])) return std::nullopt;
  // "a" is a word of its own in "answer is a mixture".
  const bool bracketed = at > 0 && std::string_view("({[*_\"'`").find(text[at - 1]) != text.npos;
  const std::string_view rest = text.substr(at + 1);
  const bool sentence_goes_on = rest.size() > 1 && rest[0] == ' ' && is_word(rest[1]);
  if (text[at] == 'a' && sentence_goes_on && !bracketed) return std::nullopt;
  return upper(text[at]);
}

}  // namespace

std::optional<char> answer_letter(std::string_view text) {
  const std::string valid = text::repaired_utf8(text);
  for (size_t at = 0; at < valid.size(); ++at) {
    const size_t size = answer_word_size(valid, at);
    if (size == 0) continue;
    if (const auto letter = letter_behind(valid, at + size)) return letter;
  }
  return std::nullopt;
}

std::optional<char> lenient_answer_letter(std::string_view answer) {
  const std::string_view text = without_thinking(answer);
  const std::string lower = lower_ascii(text);
  std::optional<char> found;
  for (size_t at = 0; (at = lower.find("answer", at)) != std::string::npos; at += 6) {
    size_t next = lower.find_first_not_of(" \t*_", at + 6);
    if (next == std::string::npos) break;
    if (lower.compare(next, 3, "is ") == 0 || lower.compare(next, 3, "is:") == 0) {
      next += 2;
      const size_t colon = lower.find_first_not_of(' ', next);
      if (colon != std::string::npos && lower[colon] == ':') next = colon + 1;
    } else if (lower[next] == ':') {
      ++next;
    } else {
      continue;
    }
    if (const auto letter = decorated_letter(text.substr(next))) found = letter;
  }
  if (found) return found;
  if (const auto boxed = last_boxed(text)) return decorated_letter(*boxed);
  const std::string_view whole = trimmed(text);
  constexpr size_t kNothingElse = 6;  // "**B**.", "(B)"
  return whole.size() <= kNothingElse ? decorated_letter(whole) : std::nullopt;
}

std::optional<char> longbench_letter(std::string_view answer) {
  std::string text = replaced(replaced(text::repaired_utf8(answer), "*", ""), "\n", " ");
  const std::string lower = lower_ascii(text);
  auto behind = [&](std::string_view phrase, bool bracket) -> std::optional<char> {
    for (size_t at = 0; (at = lower.find(phrase, at)) != std::string::npos; ++at) {
      const size_t next = skip_python_spaces(text, at + phrase.size());
      const std::string_view rest = std::string_view(text).substr(next);
      if (bracket) {
        if (rest.size() >= 3 && rest[0] == '(' && is_choice(rest[1]) && rest[2] == ')') {
          return upper(rest[1]);
        }
      } else if (!rest.empty() && is_choice(rest[0]) && (rest.size() == 1 || !is_word(rest[1]))) {
        return upper(rest[0]);
      }
    }
    return std::nullopt;
  };
  if (const auto letter = behind("the correct answer is", true)) return letter;
  if (const auto letter = behind("the correct answer is", false)) return letter;
  if (const auto letter = answer_letter(text)) return upper(*letter);
  if (const auto letter = behind("answer is", true)) return letter;
  return behind("answer is", false);
}

}  // namespace winnow::eval
