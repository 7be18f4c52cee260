#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "testing/tiny_tokenizer.h"
#include "text/tokenizer_files.h"

namespace winnow::text {
namespace {

using testing::TinyTokenizerSpec;
using Ids = std::vector<int32_t>;
constexpr auto kParse = ControlTokens::kParse;
constexpr auto kPlain = ControlTokens::kPlain;

TinyTokenizerSpec hello_spec() {
  TinyTokenizerSpec spec;
  spec.merges = {{"l", "l"}, {"h", "e"}, {" ", "he"}, {"ll", "o"}, {"he", "llo"}, {"\xE4", "\xB8"}};
  spec.added_tokens = testing::tiny_glm_added_tokens();
  return spec;
}

TEST(Tokenizer, MergesInOrderOfRank) {
  const auto tokenizer = make_tiny_tokenizer(hello_spec());
  EXPECT_EQ(tokenizer->encode("hello", kParse), (Ids{260}));
  EXPECT_EQ(tokenizer->encode(" hello", kParse), (Ids{258, 259}));
  EXPECT_EQ(tokenizer->encode("中", kParse), (Ids{261, 0xAD}));
  EXPECT_EQ(tokenizer->encode("", kParse), Ids{});
  EXPECT_EQ(tokenizer->token_bytes(261), "\xE4\xB8");
  EXPECT_EQ(tokenizer->token_bytes(999), "");
  EXPECT_EQ(tokenizer->token_id(" he"), 258);
  EXPECT_EQ(tokenizer->token_id("<|user|>"), 1004);
  EXPECT_FALSE(tokenizer->token_id("nothing"));
  EXPECT_EQ(tokenizer->vocab_size(), 1013);  // largest id + 1
}

TEST(Tokenizer, BothMergeSpellingsAreOneModel) {
  TinyTokenizerSpec spec = hello_spec();
  const std::string text = "well, hello hell shell 中";
  const Ids expected = make_tiny_tokenizer(spec)->encode(text, kParse);
  spec.merges_as_pairs = true;
  EXPECT_EQ(make_tiny_tokenizer(spec)->encode(text, kParse), expected);
}

TEST(Tokenizer, IgnoreMergesTakesWholeWords) {
  TinyTokenizerSpec spec;
  spec.merges = {{"a", "b"}, {"b", "c"}, {"a", "bc"}};  // "abc" merges to ab, c
  EXPECT_EQ(make_tiny_tokenizer(spec)->encode("abc", kParse), (Ids{256, 'c'}));
  spec.ignore_merges = true;
  EXPECT_EQ(make_tiny_tokenizer(spec)->encode("abc", kParse), (Ids{258}));
  EXPECT_EQ(make_tiny_tokenizer(spec)->encode("abcd", kParse), (Ids{256, 'c', 'd'}));
}

TEST(Tokenizer, InvalidUtf8IsReplaced) {
  const auto tokenizer = testing::make_byte_tokenizer();
  const Ids replacement{0xEF, 0xBF, 0xBD};
  for (const char* bad : {"\xFF", "\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80"}) {
    const Ids ids = tokenizer->encode(bad, kParse);
    EXPECT_EQ(Ids(ids.begin(), ids.begin() + 3), replacement);
    EXPECT_EQ(ids.size() % 3, 0u);
  }
  EXPECT_EQ(tokenizer->decode(Ids{0xF0, 0x9F, 'a'}, false), "\uFFFDa");
  // A border may cut a character: the pieces are one text.
  const std::vector<PromptPiece> pieces{{"\xE4\xB8", kParse}, {"\xAD", kPlain}};
  EXPECT_EQ(tokenizer->encode(pieces), (Ids{0xE4, 0xB8, 0xAD}));
}

// B89
TEST(Tokenizer, EveryAddedTokenDecodesToItsText) {
  TinyTokenizerSpec spec;
  spec.added_tokens = testing::tiny_glm_added_tokens();
  for (const char* content : {"<｜DSML｜", "<｜tool▁calls▁begin｜>", "ĠĊ", "é", " two words "}) {
    AddedToken token;
    token.id = 2000 + static_cast<int32_t>(spec.added_tokens.size());
    token.content = content;
    spec.added_tokens.push_back(token);
  }
  const auto tokenizer = make_tiny_tokenizer(spec);
  EXPECT_EQ(tokenizer->added_tokens().size(), spec.added_tokens.size());
  for (const AddedToken& token : tokenizer->added_tokens()) {
    EXPECT_EQ(tokenizer->decode(Ids{token.id}, false), token.content);
    EXPECT_EQ(tokenizer->token_bytes(token.id), token.content);
    EXPECT_EQ(tokenizer->encode(token.content, kParse), Ids{token.id});
    // Tags that parsers need are not special and survive; control tokens do not.
    EXPECT_EQ(tokenizer->decode(Ids{token.id}, true), token.special ? "" : token.content);
  }
}

// B89: expectations from `tokenizers` 0.23 (tools/compare_tokenizer.py runs the like of it).
TEST(Tokenizer, AddedTokenFlags) {
  TinyTokenizerSpec spec;
  const auto add = [&](const char* content, bool lstrip, bool rstrip, bool single_word) {
    AddedToken token;
    token.id = 1000 + static_cast<int32_t>(spec.added_tokens.size());
    token.content = content;
    token.lstrip = lstrip;
    token.rstrip = rstrip;
    token.single_word = single_word;
    spec.added_tokens.push_back(token);
  };
  add("<think>", false, false, false);
  add("<L>", true, false, false);
  add("<R>", false, true, false);
  add("cat", false, false, true);
  add("<thinking>", false, false, false);
  const auto tokenizer = make_tiny_tokenizer(spec);
  EXPECT_EQ(tokenizer->encode("  <think>  x", kParse), (Ids{' ', ' ', 1000, ' ', ' ', 'x'}));
  EXPECT_EQ(tokenizer->encode("a \u3000\n<L> b", kParse), (Ids{'a', 1001, ' ', 'b'}));
  EXPECT_EQ(tokenizer->encode("a <R>\u00A0 b", kParse), (Ids{'a', ' ', 1002, 'b'}));
  EXPECT_EQ(tokenizer->encode("<R>  <L>", kParse), (Ids{1002, 1001}));
  EXPECT_EQ(tokenizer->encode("cat", kParse), (Ids{1003}));
  EXPECT_EQ(tokenizer->encode("a cat.", kParse), (Ids{'a', ' ', 1003, '.'}));
  EXPECT_EQ(tokenizer->encode("cats", kParse), (Ids{'c', 'a', 't', 's'}));
  EXPECT_EQ(tokenizer->encode("_cat", kParse), (Ids{'_', 'c', 'a', 't'}));
  EXPECT_EQ(tokenizer->encode("<thinking><think>", kParse), (Ids{1004, 1000}));  // longest first
}

TEST(Tokenizer, NormalizedTokensAreFoundAfterNfc) {
  TinyTokenizerSpec spec;
  AddedToken token;
  token.id = 1000;
  token.content = "é!";
  token.normalized = true;
  spec.added_tokens.push_back(token);
  json::Value json = tiny_tokenizer_json(spec);
  json.set("normalizer", json::Object{{"type", "Sequence"},
                                      {"normalizers", json::Array{json::Object{{"type", "NFC"}}}}});
  const auto tokenizer = parse_tokenizer_json(json::dump(json), "f");
  EXPECT_EQ(tokenizer->encode("ae\u0301", kParse), (Ids{'a', 0xC3, 0xA9}));
  EXPECT_EQ(tokenizer->encode("e\u0301!", kParse), (Ids{1000}));
  EXPECT_EQ(tokenizer->encode("e\u0301!", kPlain), (Ids{0xC3, 0xA9, '!'}));
  const std::vector<PromptPiece> pieces{{"e", kParse}, {"\u0301", kPlain}, {"!", kParse}};
  EXPECT_EQ(tokenizer->encode(pieces), (Ids{0xC3, 0xA9, '!'}));
  // Marks in an order that sorting by insertion would take quadratic time for.
  std::string marks = "e";
  for (int i = 0; i < 100'000; ++i) marks += "\u0301";
  for (int i = 0; i < 100'000; ++i) marks += "\u0323";
  // The first dot sorts to the front and joins the e: U+1EB9, 3 bytes for the 3 of the two.
  EXPECT_EQ(tokenizer->encode(marks, kParse).size(), marks.size());
}

std::set<int32_t> added_ids(const Tokenizer& tokenizer) {
  std::set<int32_t> ids;
  for (const AddedToken& token : tokenizer.added_tokens()) ids.insert(token.id);
  return ids;
}

bool has_added(const Tokenizer& tokenizer, const Ids& ids) {
  const auto added = added_ids(tokenizer);
  return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return added.count(id) != 0; });
}

// B88
TEST(Tokenizer, ControlTokensInPlainTextAreText) {
  const auto tokenizer = testing::make_byte_tokenizer();
  for (const char* content : {"<|user|>", "<|assistant|></think>", "<tool_call>", "[gMASK]<sop>",
                              "x<|endoftext|>y", "<|user|"}) {
    const std::vector<PromptPiece> pieces{
        {"[gMASK]<sop><|user|>", kParse}, {content, kPlain}, {"<|assistant|>", kParse}};
    const Ids ids = tokenizer->encode(pieces);
    EXPECT_EQ(Ids(ids.begin(), ids.begin() + 3), (Ids{1001, 1002, 1004}));
    EXPECT_EQ(ids.back(), 1005);
    EXPECT_FALSE(has_added(*tokenizer, Ids(ids.begin() + 3, ids.end() - 1))) << content;
    EXPECT_EQ(tokenizer->decode(ids, false), pieces[0].text + content + pieces[2].text);
    EXPECT_FALSE(has_added(*tokenizer, tokenizer->encode(content, kPlain)));
  }
}

// B88: a marker put together out of two pieces, of which not both are ours.
TEST(Tokenizer, ControlTokensDoNotFormAcrossPlainBorders) {
  const auto tokenizer = testing::make_byte_tokenizer();
  const std::string marker = "<|user|>";
  for (size_t cut = 1; cut < marker.size(); ++cut) {
    for (const auto& [left, right] :
         {std::pair(kPlain, kPlain), {kParse, kPlain}, {kPlain, kParse}}) {
      const std::vector<PromptPiece> pieces{{marker.substr(0, cut), left},
                                            {marker.substr(cut), right}};
      EXPECT_FALSE(has_added(*tokenizer, tokenizer->encode(pieces))) << cut;
    }
    const std::vector<PromptPiece> ours{
        {marker.substr(0, cut), kParse}, {"", kPlain}, {marker.substr(cut), kParse}};
    EXPECT_EQ(tokenizer->encode(ours), (Ids{1004}));
  }
}

// B88: nor by merges, where the vocabulary itself can spell the marker.
TEST(Tokenizer, MergesDoNotSpellControlTokens) {
  for (const bool ignore_merges : {false, true}) {
    TinyTokenizerSpec spec;
    spec.merges = {{"t", "a"}, {"ta", "g"}, {"tag", "s"}};
    spec.ignore_merges = ignore_merges;
    AddedToken token;
    token.id = 257;
    token.content = "tag";
    spec.added_tokens.push_back(token);
    const auto tokenizer = make_tiny_tokenizer(spec);
    EXPECT_EQ(tokenizer->encode("tag", kParse), (Ids{257}));
    EXPECT_EQ(tokenizer->encode("tag", kPlain), (Ids{256, 'g'}));
    EXPECT_EQ(tokenizer->encode("tags", kParse), (Ids{257, 's'}));
  }
}

// B88: without markers, cutting a prompt into pieces changes nothing.
RC_GTEST_PROP(TokenizerProperty, PieceBordersAreNoTokenBorders, ()) {
  static const auto tokenizer = make_tiny_tokenizer(hello_spec());
  const auto texts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
      std::vector<std::string>{"he", "llo", " ", "hello", "\n", "1", "23", "中", "<|", "'", "s"}));
  std::vector<PromptPiece> pieces;
  std::string whole;
  for (const auto& text : texts) {
    pieces.push_back({text, *rc::gen::arbitrary<bool>() ? kPlain : kParse});
    whole += text;
  }
  RC_ASSERT(tokenizer->encode(pieces) == tokenizer->encode(whole, kParse));
  RC_ASSERT(tokenizer->encode(whole, kPlain) == tokenizer->encode(whole, kParse));
}

// Merges one at a time over the whole word: what BPE means, slowly.
Ids merged_slowly(std::vector<std::string> symbols, const TinyTokenizerSpec& spec) {
  for (;;) {
    size_t best_rank = spec.merges.size(), best_at = 0;
    for (size_t at = 0; at + 1 < symbols.size(); ++at) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (spec.merges[rank] == std::pair(symbols[at], symbols[at + 1])) {
          best_rank = rank;
          best_at = at;
        }
      }
    }
    if (best_rank == spec.merges.size()) break;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
  Ids ids;
  for (const auto& symbol : symbols) {
    int32_t id = static_cast<unsigned char>(symbol[0]);
    for (size_t i = 0; i < spec.merges.size(); ++i) {
      if (spec.merges[i].first + spec.merges[i].second == symbol) {
        id = testing::kTinyFirstMerge + static_cast<int32_t>(i);
      }
    }
    ids.push_back(id);
  }
  return ids;
}

// Short and long words (two algorithms), each twice (the second from the word memory).
RC_GTEST_PROP(TokenizerProperty, BpeIsItsDefinition, ()) {
  TinyTokenizerSpec spec;
  std::vector<std::string> tokens{"a", "b", "c"};
  for (int i = *rc::gen::inRange(0, 12); i > 0; --i) {
    auto pair = std::pair(*rc::gen::elementOf(tokens), *rc::gen::elementOf(tokens));
    const std::string result = pair.first + pair.second;
    if (std::find(tokens.begin(), tokens.end(), result) != tokens.end()) continue;
    tokens.push_back(result);
    spec.merges.push_back(std::move(pair));
  }
  const auto size = static_cast<size_t>(*rc::gen::inRange(1, 120));
  const auto word =
      *rc::gen::container<std::string>(size, rc::gen::elementOf(std::string("aaabbc")));
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  Ids expected = merged_slowly(symbols, spec);
  expected.push_back('1');
  const Ids once = expected;
  expected.insert(expected.end(), once.begin(), once.end());
  RC_ASSERT(make_tiny_tokenizer(spec)->encode(word + "1" + word + "1", kParse) == expected);
}

// B83: long runs, on a thread with 256 KB of stack. Quadratic work over 1 MB would never end.
TEST(Tokenizer, LongRunsOnASmallStack) {
  const auto body = [](void*) -> void* {
    const auto tokenizer = make_tiny_tokenizer(hello_spec());
    const auto by_regex = [] {
      json::Value json = tiny_tokenizer_json(hello_spec());
      json.set("pre_tokenizer", json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}});
      return parse_tokenizer_json(json::dump(json), "f");
    }();
    std::vector<std::string> texts{std::string(131'072, 'Z'), std::string(1'000'000, ' '),
                                   std::string(1'000'000, '\n'), std::string(1'000'000, 'l'),
                                   std::string(1'000'000, '<')};
    std::string han, us, line;
    for (int i = 0; i < 50'000; ++i) han += "中";
    for (int i = 0; i < 5'000; ++i) us += "us";
    for (int i = 0; i < 1'000'000; ++i) line += "hello/+=0Q"[(i * 7 + i / 13) % 10];
    texts.insert(texts.end(), {han, us, line});
    for (const std::string& text : texts) {
      for (const auto* model : {tokenizer.get(), by_regex.get()}) {
        const Ids ids = model->encode(text, kParse);
        EXPECT_EQ(model->decode(ids, false), text);
      }
    }
    EXPECT_EQ(tokenizer->encode(texts[3], kParse), Ids(500'000, 256));
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Tokenizer, ThreadsShareOne) {
  json::Value json = tiny_tokenizer_json(hello_spec());
  json.set("pre_tokenizer", json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}});
  const auto tokenizer = parse_tokenizer_json(json::dump(json), "f");
  const std::string text = "[gMASK]<sop><|user|> hello shell, hello 中文 123 hellish<|assistant|>";
  const Ids expected = tokenizer->encode(text, kParse);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) {
        EXPECT_EQ(tokenizer->encode(text, kParse), expected);
        EXPECT_EQ(tokenizer->decode(expected, false), text);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

std::string message_of(const json::Value& json) {
  try {
    (void)parse_tokenizer_json(json::dump(json), "dir/tokenizer.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Tokenizer, ErrorsNameFileAndField) {
  const json::Value good = tiny_tokenizer_json(hello_spec());
  EXPECT_EQ(message_of(good), "");
  const auto changed = [&](const char* part, const char* key, json::Value value) {
    json::Value json = good;
    (part[0] ? json.find(part) : &json)->set(key, std::move(value));
    return message_of(json);
  };
  const std::string file = "dir/tokenizer.json: ";
  EXPECT_EQ(changed("model", "type", "Unigram"),
            file + "model.type: \"Unigram\" is not supported (known: BPE)");
  EXPECT_EQ(changed("model", "vocab", nullptr), file + "model.vocab is no object");
  EXPECT_EQ(changed("model", "vocab", json::Object{{"a", -1}}),
            file + "model.vocab[a]: -1 is no token id (0 to 16777215)");
  EXPECT_EQ(changed("model", "vocab", json::Object{{"a", 1}, {"b", 1}}),
            file + "model.vocab[b]: id 1 is there twice");
  EXPECT_EQ(changed("model", "vocab", json::Object{{"a", 1}}),
            file + "model.vocab has no token for byte 0x00");
  EXPECT_EQ(changed("model", "merges", json::Array{"a b c"}), file + "model.merges[0] is no pair");
  EXPECT_EQ(changed("model", "merges", json::Array{"l l", "q z"}),
            file + "model.merges[1]: \"qz\" is not in model.vocab");
  EXPECT_EQ(changed("model", "byte_fallback", true),
            file + "model.byte_fallback: only false is supported");
  EXPECT_EQ(changed("model", "dropout", 0.1), file + "model.dropout: only null is supported");
  EXPECT_EQ(changed("model", "end_of_word_suffix", "</w>"),
            file + "model.end_of_word_suffix: only null is supported");
  EXPECT_EQ(changed("", "normalizer", json::Object{{"type", "Lowercase"}}),
            file + "normalizer.type: Lowercase is not supported (known: null, Sequence, NFC)");
  EXPECT_EQ(changed("", "decoder", json::Object{{"type", "Metaspace"}}),
            file + "decoder.type: Metaspace is not supported (known: null, Sequence, ByteLevel)");
  EXPECT_EQ(changed("", "pre_tokenizer", nullptr), file + "pre_tokenizer is missing");
  EXPECT_EQ(changed("", "added_tokens", json::Array{json::Object{{"id", 5}}}),
            file + "added_tokens[0].content is no text");
  EXPECT_EQ(changed("", "added_tokens", json::Array{json::Object{{"id", 5}, {"content", "<x>"}}}),
            file + "model.vocab[\u0105]: added_tokens calls id 5 \"<x>\"");
}

class ModelFolder : public ::testing::Test {
 protected:
  ModelFolder() { std::filesystem::create_directories(path_); }
  ~ModelFolder() override { std::filesystem::remove_all(path_); }
  void write(const char* name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }
  std::string message() const {
    try {
      (void)load_tokenizer(path_.string());
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  // Kimi's files: 256 bytes, then tokens "ab", "abc", " the".
  void write_kimi() const {
    std::string ranks;
    static constexpr char kDigits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int byte = 0; byte < 256; ++byte) {
      ranks += {kDigits[byte >> 2], kDigits[(byte & 3) << 4], '=', '='};
      ranks += fmt::format(" {}\n", byte);
    }
    ranks += "YWI= 256\nYWJj 257\nIHRoZQ== 258\n";
    write("tiktoken.model", ranks);
    write("tokenizer_config.json", R"({"added_tokens_decoder":{
      "300":{"content":"[BOS]","special":true},
      "302":{"content":"<|im_middle|>","special":true},
      "305":{"content":"<|tool_call_begin|>","special":false}}})");
  }
  std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) / ("tokenizer_test_" + std::to_string(getpid()));
};

TEST_F(ModelFolder, LoadsTokenizerJson) {
  write("tokenizer.json", json::dump(tiny_tokenizer_json(hello_spec())));
  EXPECT_EQ(load_tokenizer(path_.string())->encode("hello", kParse), (Ids{260}));
}

TEST_F(ModelFolder, LoadsKimiFiles) {
  write_kimi();
  const auto tokenizer = load_tokenizer(path_.string());
  // "abc" by its own token; "abcd" merges ab, then abc; " the" is a whole word without merges.
  EXPECT_EQ(tokenizer->encode("abc abcd the thes", kParse),
            (Ids{257, ' ', 257, 'd', 258, ' ', 't', 'h', 'e', 's'}));
  EXPECT_EQ(tokenizer->encode("<|im_middle|><|tool_call_begin|>", kParse), (Ids{302, 305}));
  EXPECT_EQ(tokenizer->decode(Ids{302, 257, 305}, true), "abc<|tool_call_begin|>");
  EXPECT_EQ(tokenizer->vocab_size(), 306);
  EXPECT_TRUE(tokenizer->is_special(300));
  EXPECT_FALSE(tokenizer->is_special(305));
}

TEST_F(ModelFolder, NamesWhatIsWrong) {
  const auto starts_with_path = [&](const char* file, const char* rest) {
    EXPECT_EQ(message(), (path_ / file).string() + rest);
  };
  EXPECT_EQ(message(), path_.string() + ": neither tokenizer.json nor tiktoken.model");
  write_kimi();
  write("tokenizer_config.json", "{}");
  starts_with_path("tokenizer_config.json", ": added_tokens_decoder is missing");
  write("tokenizer_config.json", R"({"added_tokens_decoder":{"7":{"content":"x"}}})");
  starts_with_path("tokenizer_config.json",
                   ": added_tokens_decoder[7]: the model has a token of that id");
  write("tiktoken.model", "IQ== 0\nIg== x\n");
  starts_with_path("tiktoken.model", ": line 2: \"Ig== x\" is not \"base64 rank\"");
  write("tiktoken.model", "IQ== 0\n");
  starts_with_path("tiktoken.model", ": no token for byte 0x00");
  std::filesystem::remove(path_ / "tokenizer_config.json");
  EXPECT_NE(message().find("tokenizer_config.json: "), std::string::npos);
  write("tokenizer.json", "{");
  EXPECT_NE(message().find("tokenizer.json: invalid JSON"), std::string::npos);
}

}  // namespace
}  // namespace winnow::text
