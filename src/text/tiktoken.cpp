// tiktoken.model with tokenizer_config.json, as Kimi-K2 ships them.
#include <array>
#include <charconv>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer_bpe.h"
#include "text/tokenizer_files.h"

namespace winnow::text {
namespace {

// False on anything but canonical base64 with padding.
bool decode_base64(std::string_view text, std::string& out) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return false;
  size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return false;
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xFFFFFF;
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out.push_back(static_cast<char>(bits >> num_bits & 0xFF));
    }
  }
  return true;
}

bool parse_id(std::string_view text, int32_t& id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() && id >= 0 && id <= kMaxTokenId;
}

std::vector<BpeVocab::Token> read_ranks(std::string_view content, const std::string& file) {
  std::vector<BpeVocab::Token> tokens;
  for (size_t line_number = 1; !content.empty(); ++line_number) {
    const size_t newline = content.find('\n');
    std::string_view line = content.substr(0, newline);
    content.remove_prefix(newline == std::string_view::npos ? content.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    BpeVocab::Token token;
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || !decode_base64(line.substr(0, blank), token.bytes) ||
        !parse_id(line.substr(blank + 1), token.id)) {
      throw_error("{}: line {}: \"{}\" is not \"base64 rank\"", file, line_number, line);
    }
    tokens.push_back(std::move(token));
  }
  if (tokens.empty()) throw_error("{}: no tokens", file);
  return tokens;
}

// Two neighbours merge where their bytes together are a token, the token of lowest rank first; so
// every way to cut a token into two tokens is a merge of that rank.
BpeModel model_of(std::vector<BpeVocab::Token> tokens, const std::string& file) {
  BpeModel model;
  std::unordered_map<std::string_view, int32_t> ids;
  std::unordered_map<int32_t, size_t> by_id;
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!ids.emplace(tokens[i].bytes, tokens[i].id).second ||
        !by_id.emplace(tokens[i].id, i).second) {
      throw_error("{}: token of rank {} is there twice", file, tokens[i].id);
    }
    model.whole_words.push_back(tokens[i].id);
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto found = ids.find(std::string_view(&c, 1));
    if (found == ids.end()) throw_error("{}: no token for byte 0x{:02X}", file, byte);
    model.byte_ids[byte] = found->second;
  }
  std::vector<BpeMerges::Merge> merges;
  for (const auto& token : tokens) {
    const std::string_view bytes = token.bytes;
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = ids.find(bytes.substr(0, cut));
      const auto right = ids.find(bytes.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({left->second, right->second, static_cast<uint32_t>(token.id), token.id});
    }
  }
  model.merges = BpeMerges(merges);
  model.vocab = BpeVocab(std::move(tokens));
  return model;
}

bool flag(const json::Value& token, std::string_view key) {
  const json::Value* value = token.find(key);
  return value && value->is_bool() && value->as_bool();
}

std::vector<AddedToken> read_added(std::string_view content,
                                   const std::string& file,
                                   const BpeVocab& vocab) {
  const auto root = json::parse(content);
  if (!root.ok()) throw_error("{}: {}", file, root.status().message);
  const json::Value* decoder = root.value().find("added_tokens_decoder");
  if (!decoder || !decoder->is_object()) throw_error("{}: added_tokens_decoder is missing", file);
  std::vector<AddedToken> tokens;
  for (const auto& [key, value] : decoder->as_object()) {
    const std::string path = "added_tokens_decoder[" + key + "]";
    AddedToken token;
    if (!parse_id(key, token.id)) throw_error("{}: {}: no token id", file, path);
    if (!vocab.bytes(token.id).empty()) {
      throw_error("{}: {}: the model has a token of that id", file, path);
    }
    const json::Value* text = value.find("content");
    if (!text || !text->is_string() || text->as_string().empty()) {
      throw_error("{}: {}.content is no text", file, path);
    }
    token.content = text->as_string();
    // tiktoken matches the text alone, whatever the strip flags say.
    token.special = flag(value, "special");
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tiktoken(std::string_view ranks,
                                          const std::string& ranks_file,
                                          std::string_view config,
                                          const std::string& config_file) {
  BpeTokenizerParts parts;
  parts.model = model_of(read_ranks(ranks, ranks_file), ranks_file);
  parts.added_tokens = read_added(config, config_file, parts.model.vocab);
  parts.pre_tokenizer = make_kimi_pretokenizer();
  return std::make_unique<BpeTokenizer>(std::move(parts));
}

}  // namespace winnow::text
