// Finds added tokens in text as Hugging Face `tokenizers` does, but only where the text is ours.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace winnow::text {

// Text with the stretches of it in which control tokens count. Valid UTF-8.
struct MarkedText {
  std::string text;
  std::vector<size_t> parse_until;  // ends of alternating stretches: parsed, plain, parsed, ...

  void append(std::string_view more, ControlTokens control);
  // The end of the parsed stretch that holds byte `at`; `at` itself where it is plain.
  size_t parsed_end(size_t at) const;
};

class AddedTokenMatcher {
 public:
  // Contents not empty.
  void add(std::string_view content, const AddedToken& token);

  struct Stretch {
    size_t begin;
    size_t end;
    int32_t id;  // -1: ordinary text
  };
  // Cuts [begin, end) of the text; nothing outside it is looked at. Longest match first, from the
  // left. A token with lstrip or rstrip takes white space along, plain or not, as in one text.
  std::vector<Stretch> cut(const MarkedText& marked, size_t begin, size_t end) const;

 private:
  struct Node {
    std::optional<AddedToken> token;  // ends here
  };
  struct Match {
    size_t end;
    const AddedToken* token;
  };
  std::optional<Match> longest(std::string_view text, size_t at, size_t limit) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::unordered_map<uint64_t, uint32_t> edges_;  // node << 8 | byte
  std::array<bool, 256> starts_{};                // bytes that begin some token
};

}  // namespace winnow::text
