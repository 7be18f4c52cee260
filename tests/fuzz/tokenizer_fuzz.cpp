// Any bytes as tokenizer files and text. Parts are divided by zero bytes: the first is a JSON
// object whose members stand in for those of a good tokenizer.json ("model.merges" for one of
// model), or else the whole file; beginning with '#', it is a tiktoken.model and the second its
// config. The rest are pieces of a prompt, by turns ours and a user's. A file is refused with an
// Error; whatever is accepted encodes and decodes by the rules below.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "text/bpe_byte_alphabet.h"
#include "text/detokenizer.h"
#include "text/tokenizer_files.h"

namespace {

using namespace winnow;
using text::ControlTokens;

constexpr size_t kMaxTextBytes = 256;  // a pattern of the fuzzer's may be as slow as it likes

json::Value good_tokenizer() {
  json::Object vocab;
  for (int byte = 0; byte < 256; ++byte) {
    vocab.emplace_back(text::byte_symbol(static_cast<uint8_t>(byte)), byte);
  }
  vocab.emplace_back("ab", 256);
  vocab.emplace_back("abc", 257);
  const json::Object added{{"id", 258}, {"content", "<s>"}, {"special", true}};
  return json::Object{
      {"added_tokens", json::Array{added}},
      {"pre_tokenizer", json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"model", json::Object{{"vocab", vocab}, {"merges", json::Array{"a b", "ab c"}}}}};
}

std::string tokenizer_json(std::string_view part) {
  auto changes = json::parse(part);
  if (!changes.ok() || !changes.value().is_object()) return std::string(part);
  static const json::Value good = good_tokenizer();
  json::Value whole = good;
  for (auto& [key, value] : changes.value().as_object()) {
    const bool in_model = key.starts_with("model.");
    json::Value& owner = in_model ? *whole.find("model") : whole;
    if (owner.is_object()) owner.set(in_model ? key.substr(6) : key, std::move(value));
    if (!whole.find("model") || !whole.find("model")->is_object()) break;
  }
  return json::dump(whole);
}

std::vector<std::string_view> parts_of(std::string_view bytes) {
  std::vector<std::string_view> parts;
  for (size_t zero; (zero = bytes.find('\0')) != std::string_view::npos;) {
    parts.push_back(bytes.substr(0, zero));
    bytes.remove_prefix(zero + 1);
  }
  parts.push_back(bytes);
  return parts;
}

void check(const text::Tokenizer& tokenizer, const std::vector<text::PromptPiece>& pieces) {
  const std::vector<int32_t> ids = tokenizer.encode(pieces);
  bool all_plain = true;
  for (const auto& piece : pieces) all_plain &= piece.control == ControlTokens::kPlain;
  for (const int32_t id : ids) {
    WINNOW_CHECK(id >= 0 && id < tokenizer.vocab_size(), "id {}", id);
    WINNOW_CHECK(!(all_plain && tokenizer.is_special(id)), "special id {} in plain text", id);
  }
  for (const bool skip : {false, true}) {
    text::Detokenizer detokenizer(tokenizer, skip);
    std::string streamed;
    for (const int32_t& id : ids) streamed += detokenizer.append({&id, 1});
    streamed += detokenizer.finish();
    WINNOW_CHECK(streamed == tokenizer.decode(ids, skip), "{}", streamed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = [] {
    log::setup("error");
    return true;
  }();
  (void)quiet;
  const auto parts = parts_of({reinterpret_cast<const char*>(data), size});
  const bool tiktoken = parts[0].starts_with('#');
  const size_t first_piece = std::min<size_t>(tiktoken ? 2 : 1, parts.size());
  try {
    const auto tokenizer =
        tiktoken ? text::parse_tiktoken(parts[0].substr(1), "r", parts[first_piece - 1], "c")
                 : text::parse_tokenizer_json(tokenizer_json(parts[0]), "f");
    std::vector<text::PromptPiece> pieces, plain;
    size_t left = kMaxTextBytes;
    for (size_t i = first_piece; i < parts.size(); ++i) {
      const std::string content(parts[i].substr(0, left));
      left -= content.size();
      const bool ours = (i - first_piece) % 2 == 0;
      pieces.push_back({content, ours ? ControlTokens::kParse : ControlTokens::kPlain});
      plain.push_back({content, ControlTokens::kPlain});
    }
    check(*tokenizer, pieces);
    check(*tokenizer, plain);
  } catch (const Error&) {
  }
  return 0;
}
