// tokenizer.json to a BpeTokenizer.
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "text/bpe_byte_alphabet.h"
#include "text/tokenizer_bpe.h"
#include "text/tokenizer_files.h"

namespace winnow::text {
namespace {

class JsonReader {
 public:
  JsonReader(const json::Value& root, const std::string& file) : root_(root), file_(file) {}

  BpeTokenizerParts read() {
    BpeTokenizerParts parts;
    parts.nfc = read_normalizer(member(root_, "normalizer", ""), "normalizer", 0);
    const json::Value* pre_tokenizer = member(root_, "pre_tokenizer", "");
    if (!pre_tokenizer) throw_error("{}: pre_tokenizer is missing", file_);
    parts.pre_tokenizer = load_pretokenizer(*pre_tokenizer, file_);
    check_decoder(member(root_, "decoder", ""), "decoder", 0);
    const json::Value* model = member(root_, "model", "");
    if (!model) throw_error("{}: model is missing", file_);
    check_model(*model);
    const json::Value* vocab = member(*model, "vocab", "model");
    if (!vocab || !vocab->is_object()) throw_error("{}: model.vocab is no object", file_);
    read_ids(vocab->as_object());
    parts.added_tokens = read_added_tokens();
    const bool ignore_merges = flag(*model, "ignore_merges", false, "model");
    read_vocab(vocab->as_object(), ignore_merges, parts.model);
    const json::Value* merges = member(*model, "merges", "model");
    if (!merges || !merges->is_array()) throw_error("{}: model.merges is no array", file_);
    parts.model.merges = BpeMerges(read_merges(merges->as_array()));
    return parts;
  }

 private:
  static constexpr int kMaxSequenceDepth = 8;

  // nullptr where it is absent or null.
  const json::Value* member(const json::Value& object,
                            std::string_view key,
                            std::string_view path) const {
    if (!object.is_object()) throw_error("{}: {} is no object", file_, path);
    const json::Value* value = object.find(key);
    return value && !value->is_null() ? value : nullptr;
  }
  bool flag(const json::Value& object,
            std::string_view key,
            bool fallback,
            std::string_view path) const {
    const json::Value* value = member(object, key, path);
    if (!value) return fallback;
    if (!value->is_bool()) throw_error("{}: {}.{} is no boolean", file_, path, key);
    return value->as_bool();
  }
  int32_t id_of(const json::Value& value, std::string_view path) const {
    if (!value.is_integer() || value.as_integer() < 0 || value.as_integer() > kMaxTokenId) {
      throw_error("{}: {}: {} is no token id (0 to {})", file_, path, json::dump(value),
                  kMaxTokenId);
    }
    return static_cast<int32_t>(value.as_integer());
  }
  std::string type_of(const json::Value& object, const std::string& path) const {
    const json::Value* type = member(object, "type", path);
    if (!type || !type->is_string()) throw_error("{}: {}.type is missing", file_, path);
    return type->as_string();
  }

  std::vector<AddedToken> read_added_tokens() {
    std::vector<AddedToken> tokens;
    const json::Value* list = member(root_, "added_tokens", "the root");
    if (!list) return tokens;
    if (!list->is_array()) throw_error("{}: added_tokens is no array", file_);
    for (size_t i = 0; i < list->as_array().size(); ++i) {
      const json::Value& item = list->as_array()[i];
      const std::string path = fmt::format("added_tokens[{}]", i);
      const json::Value* id = member(item, "id", path);
      const json::Value* content = member(item, "content", path);
      if (!id) throw_error("{}: {}.id is missing", file_, path);
      if (!content || !content->is_string() || content->as_string().empty()) {
        throw_error("{}: {}.content is no text", file_, path);
      }
      AddedToken token;
      token.content = content->as_string();
      // The vocabulary's id comes first, as `tokenizers` has it.
      const auto known = ids_.find(token.content);
      token.id = known != ids_.end() ? known->second : id_of(*id, path + ".id");
      token.special = flag(item, "special", false, path);
      token.lstrip = flag(item, "lstrip", false, path);
      token.rstrip = flag(item, "rstrip", false, path);
      token.single_word = flag(item, "single_word", false, path);
      token.normalized = flag(item, "normalized", !token.special, path);
      const auto [earlier, is_new] = added_.emplace(token.id, token);
      if (!is_new && earlier->second.content == token.content) continue;
      if (!is_new) throw_error("{}: {}.id: {} is there twice", file_, path, token.id);
      tokens.push_back(std::move(token));
    }
    return tokens;
  }

  // Whether to apply NFC.
  bool read_normalizer(const json::Value* normalizer, const std::string& path, int depth) const {
    if (!normalizer) return false;
    const std::string type = type_of(*normalizer, path);
    if (type == "NFC") return true;
    if (type != "Sequence" || depth >= kMaxSequenceDepth) {
      throw_error("{}: {}.type: {} is not supported (known: null, Sequence, NFC)", file_, path,
                  type);
    }
    const json::Value* list = member(*normalizer, "normalizers", path);
    if (!list || !list->is_array()) throw_error("{}: {}.normalizers is no array", file_, path);
    bool nfc = false;
    for (size_t i = 0; i < list->as_array().size(); ++i) {
      const std::string item = fmt::format("{}.normalizers[{}]", path, i);
      nfc |= read_normalizer(&list->as_array()[i], item, depth + 1);
    }
    return nfc;
  }

  void check_decoder(const json::Value* decoder, const std::string& path, int depth) const {
    if (!decoder) return;
    const std::string type = type_of(*decoder, path);
    if (type == "ByteLevel") return;
    if (type != "Sequence" || depth >= kMaxSequenceDepth) {
      throw_error("{}: {}.type: {} is not supported (known: null, Sequence, ByteLevel)", file_,
                  path, type);
    }
    const json::Value* list = member(*decoder, "decoders", path);
    if (!list || !list->is_array()) throw_error("{}: {}.decoders is no array", file_, path);
    for (size_t i = 0; i < list->as_array().size(); ++i) {
      check_decoder(&list->as_array()[i], fmt::format("{}.decoders[{}]", path, i), depth + 1);
    }
  }

  void check_model(const json::Value& model) const {
    const json::Value* type = member(model, "type", "model");
    if (type && !(type->is_string() && type->as_string() == "BPE")) {
      throw_error("{}: model.type: {} is not supported (known: BPE)", file_, json::dump(*type));
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const json::Value* value = member(model, key, "model");
      if (value && !(value->is_string() && value->as_string().empty())) {
        throw_error("{}: model.{}: only null is supported", file_, key);
      }
    }
    const json::Value* dropout = member(model, "dropout", "model");
    if (dropout && !(dropout->is_number() && dropout->as_number() == 0)) {
      throw_error("{}: model.dropout: only null is supported", file_);
    }
    if (flag(model, "byte_fallback", false, "model")) {
      throw_error("{}: model.byte_fallback: only false is supported", file_);
    }
  }

  void read_ids(const json::Object& vocab) {
    ids_.reserve(vocab.size());
    std::unordered_set<int32_t> seen;
    for (const auto& [text, value] : vocab) {
      const std::string path = "model.vocab[" + text + "]";
      const int32_t id = id_of(value, path);
      if (!seen.insert(id).second) throw_error("{}: {}: id {} is there twice", file_, path, id);
      ids_.emplace(text, id);
    }
  }

  // A control token's id must not come out of ordinary text (fault B88). Where its text is taken
  // as that token, its merge could not happen there anyway; where the text is a user's, it must
  // not. Only a single_word token may well stand inside ordinary words.
  bool only_as_added(int32_t id) const {
    const auto token = added_.find(id);
    return token != added_.end() && (token->second.special || !token->second.single_word);
  }

  void read_vocab(const json::Object& vocab, bool ignore_merges, BpeModel& model) {
    std::vector<BpeVocab::Token> tokens;
    tokens.reserve(vocab.size());
    for (const auto& [text, value] : vocab) {
      const int32_t id = ids_.at(text);
      const auto token = added_.find(id);
      if (token != added_.end() && token->second.content != text) {
        throw_error("{}: model.vocab[{}]: added_tokens calls id {} \"{}\"", file_, text, id,
                    token->second.content);
      }
      const auto bytes = bytes_of_symbols(text);
      tokens.push_back({id, bytes ? *bytes : text});
      if (ignore_merges && bytes && !bytes->empty() && !only_as_added(id)) {
        model.whole_words.push_back(id);
      }
    }
    model.vocab = BpeVocab(std::move(tokens));
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids_.find(byte_symbol(static_cast<uint8_t>(byte)));
      const bool in_utf8 = byte < 0xF5 && byte != 0xC0 && byte != 0xC1;
      if (found == ids_.end() && in_utf8) {
        throw_error("{}: model.vocab has no token for byte 0x{:02X}", file_, byte);
      }
      model.byte_ids[static_cast<size_t>(byte)] = found == ids_.end() ? -1 : found->second;
    }
  }

  std::vector<BpeMerges::Merge> read_merges(const json::Array& list) const {
    std::vector<BpeMerges::Merge> merges;
    merges.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const auto [left, right] = read_pair(list[i], i);
      const auto id_of_part = [&](const std::string& part) {
        const auto found = ids_.find(part);
        if (found != ids_.end()) return found->second;
        throw_error("{}: model.merges[{}]: \"{}\" is not in model.vocab", file_, i, part);
      };
      const int32_t result = id_of_part(left + right);
      if (only_as_added(result)) continue;
      merges.push_back({id_of_part(left), id_of_part(right), static_cast<uint32_t>(i), result});
    }
    return merges;
  }

  // "a b", or ["a", "b"] where a token may hold a blank.
  std::pair<std::string, std::string> read_pair(const json::Value& merge, size_t i) const {
    if (merge.is_string()) {
      const std::string& text = merge.as_string();
      const size_t blank = text.find(' ');
      if (blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos) {
        return {text.substr(0, blank), text.substr(blank + 1)};
      }
    } else if (merge.is_array() && merge.as_array().size() == 2 &&
               merge.as_array()[0].is_string() && merge.as_array()[1].is_string()) {
      return {merge.as_array()[0].as_string(), merge.as_array()[1].as_string()};
    }
    throw_error("{}: model.merges[{}] is no pair", file_, i);
  }

  const json::Value& root_;
  const std::string& file_;
  std::unordered_map<int32_t, AddedToken> added_;
  std::unordered_map<std::string_view, int32_t> ids_;  // of model.vocab; views of root_
};

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view content, const std::string& file) {
  const auto root = json::parse(content);
  if (!root.ok()) throw_error("{}: {}", file, root.status().message);
  if (!root.value().is_object()) throw_error("{}: no object", file);
  return std::make_unique<BpeTokenizer>(JsonReader(root.value(), file).read());
}

}  // namespace winnow::text
