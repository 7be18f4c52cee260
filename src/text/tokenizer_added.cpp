#include "text/tokenizer_added.h"

#include <algorithm>

#include "text/unicode_classes.h"

namespace winnow::text {
namespace {

// Start of the character before `at`; at > 0.
size_t previous(std::string_view text, size_t at) {
  do {
    --at;
  } while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

uint16_t flags_at(const ClassCursor& cursor, std::string_view text, size_t at) {
  return cursor.at(text.data() + at).flags;
}

// Word characters beside [start, end) of text.
bool touches_word(const ClassCursor& cursor, std::string_view text, size_t start, size_t end) {
  if (start > 0 && flags_at(cursor, text, previous(text, start)) & kWord) return true;
  return end < text.size() && flags_at(cursor, text, end) & kWord;
}

}  // namespace

void MarkedText::append(std::string_view more, ControlTokens control) {
  if (more.empty()) return;
  text += more;
  if (parse_until.empty()) parse_until.push_back(0);
  const bool last_is_plain = parse_until.size() % 2 == 0;
  if ((control == ControlTokens::kPlain) == last_is_plain) {
    parse_until.back() = text.size();
  } else {
    parse_until.push_back(text.size());
  }
}

size_t MarkedText::parsed_end(size_t at) const {
  const auto stretch = std::upper_bound(parse_until.begin(), parse_until.end(), at);
  const bool parsed = stretch != parse_until.end() && (stretch - parse_until.begin()) % 2 == 0;
  return parsed ? *stretch : at;
}

void AddedTokenMatcher::add(std::string_view content, const AddedToken& token) {
  starts_[static_cast<unsigned char>(content[0])] = true;
  uint32_t node = 0;
  for (const char c : content) {
    const uint64_t key = static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    const auto [edge, is_new] = edges_.try_emplace(key, static_cast<uint32_t>(nodes_.size()));
    node = edge->second;
    if (is_new) nodes_.emplace_back();
  }
  if (!nodes_[node].token) nodes_[node].token = token;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::longest(std::string_view text,
                                                                   size_t at,
                                                                   size_t limit) const {
  std::optional<Match> match;
  uint64_t node = 0;
  for (size_t i = at; i < limit; ++i) {
    const auto edge = edges_.find(node << 8 | static_cast<unsigned char>(text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (const auto& token = nodes_[node].token) match = Match{i + 1, &*token};
  }
  return match;
}

std::vector<AddedTokenMatcher::Stretch> AddedTokenMatcher::cut(const MarkedText& marked,
                                                               size_t begin,
                                                               size_t end) const {
  const ClassCursor cursor;
  const std::string_view text(marked.text.data() + begin, end - begin);
  std::vector<Stretch> stretches;
  if (edges_.empty()) {
    if (begin < end) stretches.push_back({begin, end, -1});
    return stretches;
  }
  const auto push = [&](size_t from, size_t to, int32_t id) {
    if (from < to || id >= 0) stretches.push_back({begin + from, begin + to, id});
  };
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && !starts_[static_cast<unsigned char>(text[at])]) ++at;
    if (at == text.size()) break;
    const size_t limit = std::min(marked.parsed_end(begin + at), end) - begin;
    const auto match = longest(text, at, limit);
    if (!match) {
      ++at;
      continue;
    }
    size_t from = at, to = match->end;
    at = match->end;
    const AddedToken& token = *match->token;
    if (token.single_word && touches_word(cursor, text, from, to)) continue;
    if (token.lstrip) {
      while (from > done) {
        const size_t before = previous(text, from);
        if (!(flags_at(cursor, text, before) & kSpace)) break;
        from = before;
      }
    }
    if (token.rstrip) {
      while (to < text.size() && flags_at(cursor, text, to) & kSpace) {
        to += cursor.at(text.data() + to).size;
      }
    }
    push(done, from, -1);
    push(from, to, token.id);
    done = to;
  }
  push(done, text.size(), -1);
  return stretches;
}

}  // namespace winnow::text
