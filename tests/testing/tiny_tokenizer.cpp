#include "testing/tiny_tokenizer.h"

#include "text/bpe_byte_alphabet.h"
#include "text/tokenizer_files.h"

namespace winnow::testing {
namespace {

constexpr const char* kGlmPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string symbols(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += text::byte_symbol(static_cast<uint8_t>(c));
  return out;
}

json::Value added_json(const text::AddedToken& token) {
  return json::Object{{"id", token.id},
                      {"content", token.content},
                      {"special", token.special},
                      {"lstrip", token.lstrip},
                      {"rstrip", token.rstrip},
                      {"single_word", token.single_word},
                      {"normalized", token.normalized}};
}

}  // namespace

std::vector<text::AddedToken> tiny_glm_added_tokens() {
  std::vector<text::AddedToken> tokens;
  const auto add = [&](const char* content, bool special) {
    text::AddedToken token;
    token.id = kTinyFirstAdded + static_cast<int32_t>(tokens.size());
    token.content = content;
    token.special = special;
    tokens.push_back(token);
  };
  for (const char* content : {"<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>",
                              "<|assistant|>", "<|observation|>"}) {
    add(content, true);
  }
  for (const char* content :
       {"<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>"}) {
    add(content, false);
  }
  return tokens;
}

json::Value tiny_tokenizer_json(const TinyTokenizerSpec& spec) {
  json::Object vocab;
  for (int byte = 0; byte < 256; ++byte) {
    vocab.emplace_back(text::byte_symbol(static_cast<uint8_t>(byte)), byte);
  }
  json::Array merges;
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const std::string left = symbols(spec.merges[i].first), right = symbols(spec.merges[i].second);
    vocab.emplace_back(left + right, kTinyFirstMerge + static_cast<int>(i));
    if (spec.merges_as_pairs) {
      merges.push_back(json::Array{left, right});
    } else {
      merges.push_back(left + " " + right);
    }
  }
  json::Array added;
  for (const auto& token : spec.added_tokens) added.push_back(added_json(token));
  const json::Object split{{"type", "Split"},
                           {"pattern", json::Object{{"Regex", kGlmPattern}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  const json::Object byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return json::Object{
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       json::Object{{"type", "Sequence"}, {"pretokenizers", json::Array{split, byte_level}}}},
      {"decoder", json::Object{{"type", "ByteLevel"}}},
      {"model", json::Object{{"type", "BPE"},
                             {"ignore_merges", spec.ignore_merges},
                             {"vocab", vocab},
                             {"merges", merges}}}};
}

std::unique_ptr<text::Tokenizer> make_tiny_tokenizer(const TinyTokenizerSpec& spec) {
  return text::parse_tokenizer_json(json::dump(tiny_tokenizer_json(spec)), "tokenizer.json");
}

std::unique_ptr<text::Tokenizer> make_byte_tokenizer() {
  TinyTokenizerSpec spec;
  spec.added_tokens = tiny_glm_added_tokens();
  return make_tiny_tokenizer(spec);
}

}  // namespace winnow::testing
