#include "text/tokenizer_bpe.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode_nfc.h"
#include "text/unicode_utf8.h"

namespace winnow::text {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return !(c & 0x80); });
}

// NFC of [begin, end). No ASCII character composes with what stands before it, so the text may be
// cut in front of each; a cluster with a plain byte in it is plain.
MarkedText normalized(const MarkedText& marked, size_t begin, size_t end) {
  MarkedText out;
  const std::string_view text(marked.text);
  for (size_t at = begin; at < end;) {
    size_t next = at + 1;
    while (next < end && text[next] & 0x80) ++next;
    const bool parsed = marked.parsed_end(at) >= next;
    const auto control = parsed ? ControlTokens::kParse : ControlTokens::kPlain;
    const std::string_view cluster = text.substr(at, next - at);
    if (is_ascii(cluster)) {
      out.append(cluster, control);
    } else {
      out.append(nfc(cluster), control);
    }
    at = next;
  }
  return out;
}

MarkedText joined_marked(std::span<const PromptPiece> pieces) {
  MarkedText marked;
  for (const PromptPiece& piece : pieces) marked.append(piece.text, piece.control);
  if (is_valid_utf8(marked.text)) return marked;  // also where a border cuts a character
  marked = {};
  for (const PromptPiece& piece : pieces) {
    marked.append(repaired_utf8(piece.text), piece.control);
  }
  return marked;
}

}  // namespace

struct BpeTokenizer::Call {
  BpeScratch scratch;
  std::vector<size_t> ends;
  std::vector<int32_t> ids;
};

BpeTokenizer::BpeTokenizer(BpeTokenizerParts parts)
    : bpe_(std::move(parts.model)),
      pre_tokenizer_(std::move(parts.pre_tokenizer)),
      added_tokens_(std::move(parts.added_tokens)),
      nfc_(parts.nfc),
      vocab_size_(bpe_.vocab().size()) {
  for (size_t i = 0; i < added_tokens_.size(); ++i) {
    const AddedToken& token = added_tokens_[i];
    vocab_size_ = std::max(vocab_size_, token.id + 1);
    added_by_id_.emplace(token.id, i);
    ids_by_content_.emplace(token.content, token.id);
    if (token.normalized) {
      after_normalizer_.add(nfc_ ? nfc(token.content) : token.content, token);
    } else {
      before_normalizer_.add(token.content, token);
    }
  }
  for (int32_t id = 0; id < bpe_.vocab().size(); ++id) {
    const std::string_view bytes = bpe_.vocab().bytes(id);
    if (!bytes.empty() && !added(id)) ids_by_content_.emplace(bytes, id);
  }
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text, ControlTokens control) const {
  MarkedText marked;
  if (is_valid_utf8(text)) {
    marked.append(text, control);
  } else {
    marked.append(repaired_utf8(text), control);
  }
  return encode(marked);
}

std::vector<int32_t> BpeTokenizer::encode(std::span<const PromptPiece> pieces) const {
  return encode(joined_marked(pieces));
}

std::vector<int32_t> BpeTokenizer::encode(const MarkedText& marked) const {
  Call call;
  call.ids.reserve(marked.text.size() / 4 + 16);
  for (const auto& stretch : before_normalizer_.cut(marked, 0, marked.text.size())) {
    if (stretch.id >= 0) {
      call.ids.push_back(stretch.id);
    } else if (nfc_ && !is_ascii(std::string_view(marked.text)
                                     .substr(stretch.begin, stretch.end - stretch.begin))) {
      const MarkedText normal = normalized(marked, stretch.begin, stretch.end);
      encode_normalized(normal, 0, normal.text.size(), call);
      call.scratch.forget();  // its words stand in `normal`
    } else {
      encode_normalized(marked, stretch.begin, stretch.end, call);
    }
  }
  return std::move(call.ids);
}

void BpeTokenizer::encode_normalized(const MarkedText& marked,
                                     size_t begin,
                                     size_t end,
                                     Call& call) const {
  const std::string_view text(marked.text);
  for (const auto& stretch : after_normalizer_.cut(marked, begin, end)) {
    if (stretch.id >= 0) {
      call.ids.push_back(stretch.id);
      continue;
    }
    call.ends.clear();
    pre_tokenizer_->split(text.substr(stretch.begin, stretch.end - stretch.begin), stretch.begin,
                          call.ends);
    size_t word = stretch.begin;
    for (const size_t word_end : call.ends) {
      bpe_.encode_word(text.substr(word, word_end - word), call.scratch, call.ids);
      word = word_end;
    }
  }
}

const AddedToken* BpeTokenizer::added(int32_t id) const {
  const auto found = added_by_id_.find(id);
  return found == added_by_id_.end() ? nullptr : &added_tokens_[found->second];
}

// An added token's text is its bytes; it never goes through the byte-level alphabet (fault B89).
std::string_view BpeTokenizer::token_bytes(int32_t id) const {
  if (const AddedToken* token = added(id)) return token->content;
  return bpe_.vocab().bytes(id);
}

std::string BpeTokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!(skip_special_tokens && is_special(id))) bytes += token_bytes(id);
  }
  return is_valid_utf8(bytes) ? bytes : repaired_utf8(bytes);
}

bool BpeTokenizer::is_special(int32_t id) const {
  const AddedToken* token = added(id);
  return token && token->special;
}

std::optional<int32_t> BpeTokenizer::token_id(std::string_view content) const {
  const auto found = ids_by_content_.find(content);
  if (found == ids_by_content_.end()) return std::nullopt;
  return found->second;
}

}  // namespace winnow::text
