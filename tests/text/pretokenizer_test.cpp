#include "text/pretokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "text/pretokenizer_pattern.h"
#include "text/unicode_classes.h"
#include "text/unicode_utf8.h"

namespace winnow::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces cut(const PreTokenizer& pre_tokenizer, std::string_view text) {
  std::vector<size_t> ends;
  pre_tokenizer.split(text, 0, ends);
  Pieces pieces;
  size_t begin = 0;
  for (const size_t end : ends) {
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return pieces;
}

constexpr const char* kGlm =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepSeek[] = {
    R"(\p{N}{1,3})", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    (R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
     R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")};
// Kimi's, with a lookahead for each intersection with "not Han".
constexpr const char* kKimi =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json::Value pre_tokenizer_json(const std::vector<std::string>& patterns) {
  json::Array steps;
  for (const auto& pattern : patterns) {
    steps.push_back(json::Object{{"type", "Split"},
                                 {"pattern", json::Object{{"Regex", pattern}}},
                                 {"behavior", "Isolated"}});
  }
  steps.push_back(
      json::Object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  return json::Object{{"type", "Sequence"}, {"pretokenizers", steps}};
}

// Not the text of any known pattern, so that it goes through PCRE2.
std::unique_ptr<PreTokenizer> by_regex(const std::vector<std::string>& patterns) {
  std::vector<std::string> grouped;
  for (const auto& pattern : patterns) grouped.push_back("(?:" + pattern + ")");
  return load_pretokenizer(pre_tokenizer_json(grouped), "test");
}

TEST(PreTokenizer, GlmPieces) {
  const auto glm = load_pretokenizer(pre_tokenizer_json({kGlm}), "test");
  EXPECT_EQ(cut(*glm, "Hello world, it's 12345  x\n\n y "),
            (Pieces{"Hello", " world", ",", " it", "'s", " ", "123", "45", " ", " x", "\n\n", " y",
                    " "}));
  EXPECT_EQ(cut(*glm, "we'LL don'\u017F (a) 'abc"),
            (Pieces{"we", "'LL", " don", "'\u017F", " (", "a", ")", " '", "abc"}));
  EXPECT_EQ(cut(*glm, "\u3000中文"), (Pieces{"\u3000中文"}));
  EXPECT_EQ(cut(*glm, ""), Pieces{});
}

TEST(PreTokenizer, DeepSeekPieces) {
  const auto deepseek =
      load_pretokenizer(pre_tokenizer_json({std::begin(kDeepSeek), std::end(kDeepSeek)}), "test");
  EXPECT_EQ(cut(*deepseek, "a  1234 中文abc #include"),
            (Pieces{"a", "  ", "123", "4", " ", "中文", "abc", " #", "include"}));
  EXPECT_EQ(cut(*deepseek, "x.y=カタ・カナ"), (Pieces{"x", ".y", "=", "カタ", "・", "カナ"}));
  EXPECT_EQ(cut(*deepseek, "\x01\x02\x03z"), (Pieces{"\x01\x02", "\x03z"}));
}

TEST(PreTokenizer, KimiPieces) {
  const auto kimi = make_kimi_pretokenizer();
  EXPECT_EQ(cut(*kimi, "HTTPServer isn't 中文ok 12345"),
            (Pieces{"HTTPServer", " isn't", " ", "中文", "ok", " ", "123", "45"}));
  EXPECT_EQ(cut(*kimi, "camelCase ABC"), (Pieces{"camel", "Case", " ABC"}));
}

// Every scanner against the pattern it stands for.
void expect_like(const PreTokenizer& scanner, const PreTokenizer& regex) {
  static const std::vector<std::string> kAlphabet{
      "a",          "B",      "s",          "LL",        "re",     "'",          "'S",     "\u017F",
      "1",          "22",     " ",          "  ",        "\n",     "\r\n",       "\t",     "\u00A0",
      "\u3000",     "\u2028", "\u180E",     ".",         "!",      "$",          "_",      "(",
      "\u2019",     "\u00BD", "é",          "ß",         "\u01C5", "\u02B0",     "\u0301", "\u0300",
      "中",         "国",     "\u3005",     "\u3007",    "\u2E80", "ア",         "・",     "ー",
      "\u3097",     "한",     "ع",          "\u0660",    "\u0915", "\u093F",     "🙂",   "\u200D",
      "\uFE0F",     "\x01",   "\u00AD",     "\u200B",    "\uE000", "\U0010FFFF", "Ⅷ",      "\u1C89",
      "\U00010D40", "\u0897", "\U00031350", "\U0001FAE9"};
  const auto parts = *rc::gen::container<Pieces>(rc::gen::elementOf(kAlphabet));
  std::string text;
  for (const auto& part : parts) text += part;
  RC_ASSERT(cut(scanner, text) == cut(regex, text));
}

RC_GTEST_PROP(PreTokenizerProperty, GlmScannerIsItsPattern, ()) {
  static const auto regex = by_regex({kGlm});
  static const auto scanner = make_glm_pretokenizer(3);
  expect_like(*scanner, *regex);
}

RC_GTEST_PROP(PreTokenizerProperty, Qwen2ScannerIsItsPattern, ()) {
  std::string pattern(kGlm);
  pattern.replace(pattern.find("{1,3}"), 5, "");
  static const auto regex = by_regex({pattern});
  static const auto scanner = load_pretokenizer(pre_tokenizer_json({pattern}), "test");
  expect_like(*scanner, *regex);
}

RC_GTEST_PROP(PreTokenizerProperty, DeepSeekScannerIsItsPatterns, ()) {
  static const auto regex = by_regex({std::begin(kDeepSeek), std::end(kDeepSeek)});
  static const auto scanner = make_deepseek_pretokenizer();
  expect_like(*scanner, *regex);
}

RC_GTEST_PROP(PreTokenizerProperty, KimiScannerIsItsPattern, ()) {
  static const auto regex = by_regex({kKimi});
  static const auto scanner = make_kimi_pretokenizer();
  expect_like(*scanner, *regex);
}

TEST(PreTokenizer, RegexBacktrackingIsBounded) {
  const auto evil = make_regex_pretokenizer("(a+)+b", false, "test");
  const std::string text(300, 'a');
  EXPECT_EQ(cut(*evil, text), Pieces{text});
}

TEST(PreTokenizer, EmptyMatchesCutButDoNotLoop) {
  const auto regex = make_regex_pretokenizer("b*", false, "test");
  EXPECT_EQ(cut(*regex, "abba中"), (Pieces{"a", "bb", "a", "中"}));
}

TEST(PreTokenizer, LiteralPattern) {
  const auto literal = make_regex_pretokenizer(".*", true, "test");
  EXPECT_EQ(cut(*literal, "ab.*.cd"), (Pieces{"ab", ".*", ".cd"}));
}

TEST(PreTokenizer, PatternsThatPcreWouldReadDifferentlyAreRefused) {
  for (const char* pattern :
       {"[\\p{L}&&[^\\p{Han}]]", "[a[bc]]", "\\pL", "[[:punct:]]", "\\p{L&}", "\\p{Nonsense}",
        "\\p{N}{1,3}+", "\\h", "(?m)a", "(?<name>a)", "\\u12", "a\\", "(*UCP)a", "["}) {
    EXPECT_THROW((void)make_regex_pretokenizer(pattern, false, "f: pattern"), Error) << pattern;
  }
  EXPECT_EQ(translate_pattern("\\p{Zl}+\\u00e9[\\]\\p{Lt}]", "f"),
            "(?-i:[\\x{2028}])+\\x{00e9}[\\]\\x{1c5}\\x{1c8}\\x{1cb}\\x{1f2}\\x{1f88}-\\x{1f8f}"
            "\\x{1f98}-\\x{1f9f}\\x{1fa8}-\\x{1faf}\\x{1fbc}\\x{1fcc}\\x{1ffc}]");
  EXPECT_EQ(translate_pattern("[^\\P{Zp}\\p{^Thai}]\\P{^Greek}", "f"),
            "[^\\x{0}-\\x{2028}\\x{202a}-\\x{d7ff}\\x{e000}-\\x{10ffff}\\P{sc:Thai}]\\p{sc:Greek}");
}

// What Hugging Face `tokenizers` 0.23.3 answers for these.
TEST(PreTokenizer, PropertiesAreThoseOfOniguruma) {
  const auto pieces = [](const char* pattern, std::string_view text) {
    return cut(*make_regex_pretokenizer(pattern, false, "test"), text);
  };
  const std::string_view text = "aB \u0345\u0345ιK\u212A9²中!\u24B6\u24B6";
  EXPECT_EQ(pieces("(?i)\\p{Lu}", text),
            (Pieces{"a", "B", " \u0345\u0345ι", "K", "\u212A", "9²中!\u24B6\u24B6"}));
  EXPECT_EQ(pieces("(?i)[\\p{Lu}]", text),
            (Pieces{"a", "B", " ", "\u0345", "\u0345", "ι", "K", "\u212A", "9²中!\u24B6\u24B6"}));
  EXPECT_EQ(pieces("(?i)[^\\p{Lu}]", text),
            (Pieces{"aB", " ", "\u0345\u0345ιK\u212A", "9", "²", "中", "!", "\u24B6", "\u24B6"}));
  EXPECT_EQ(pieces("\\p{ Letter }+", text),
            (Pieces{"aB", " \u0345\u0345", "ιK\u212A", "9²", "中", "!\u24B6\u24B6"}));
  EXPECT_EQ(pieces("[[:alpha:]]+", text),
            (Pieces{"aB", " ", "\u0345\u0345ιK\u212A", "9²", "中", "!", "\u24B6\u24B6"}));
  EXPECT_EQ(pieces("\\b", text),
            (Pieces{"aB", " ", "\u0345\u0345ιK\u212A9²中", "!", "\u24B6\u24B6"}));
  EXPECT_EQ(pieces("\\d", "9²\U00010D40x"), (Pieces{"9", "²", "\U00010D40", "x"}));
  EXPECT_EQ(pieces("\\W", "a²\u200D\u0301"), (Pieces{"a²", "\u200D", "\u0301"}));
}

// Letters of Unicode 15 and 16, which the PCRE2 of Debian 12 has never seen.
TEST(PreTokenizer, ANewLetterIsALetterWhateverPcreKnows) {
  const auto regex = make_regex_pretokenizer("\\p{L}+|[^\\p{L}]+", false, "test");
  EXPECT_EQ(cut(*regex, "a\u1C89\U00031350.\U0001E030!"),
            (Pieces{"a\u1C89\U00031350", ".", "\U0001E030", "!"}));
}

TEST(PreTokenizer, SpacesAreThoseOfUnicode) {
  const auto regex = make_regex_pretokenizer("\\s", false, "test");
  const auto inverse = make_regex_pretokenizer("[\\S]", false, "test");
  EXPECT_EQ(cut(*regex, "\u180E\u180Ea"), (Pieces{"\u180E\u180Ea"}));
  EXPECT_EQ(cut(*regex, "\u00A0\u00A0"), (Pieces{"\u00A0", "\u00A0"}));
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "a";
    append_utf8(text, c);
    const bool is_space = char_class_table()[c] & kSpace;
    ASSERT_EQ(cut(*regex, text).size() == 2, is_space) << c;
    ASSERT_EQ(cut(*inverse, text)[0], "a");
  }
}

TEST(PreTokenizer, ErrorsNameFileAndField) {
  const auto message = [](const char* json) -> std::string {
    try {
      (void)load_pretokenizer(json::parse(json).value(), "dir/tokenizer.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(R"({"type":"Metaspace"})"),
            "dir/tokenizer.json: pre_tokenizer.type: Metaspace is not supported (known: Sequence, "
            "Split, ByteLevel)");
  EXPECT_EQ(message(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":
                        {"Regex":"a"},"behavior":"Removed"}]})"),
            "dir/tokenizer.json: pre_tokenizer.pretokenizers[0].behavior: only Isolated is "
            "supported");
  EXPECT_EQ(message(R"({"type":"ByteLevel"})"),
            "dir/tokenizer.json: pre_tokenizer.add_prefix_space: only false is supported");
  EXPECT_NE(message(R"({"type":"Sequence","pretokenizers":[]})").find("no ByteLevel"),
            std::string::npos);
}

TEST(UnicodeClasses, AreThoseOfUnicode16) {
  const uint16_t* table = char_class_table();
  EXPECT_TRUE(table[0x1C89] & kUpper);     // new in 16.0
  EXPECT_FALSE(table[0x16EA0] & kLetter);  // new in 17.0
  EXPECT_TRUE(table[0x31350] & kHan);
  EXPECT_EQ(table[0x41], kUpper | kWord | kAsciiLetter);
  EXPECT_EQ(table[0x0A], kSpace | kNewline);
  EXPECT_EQ(table[0x5F], kPunctSymbol | kWord);
}

}  // namespace
}  // namespace winnow::text
