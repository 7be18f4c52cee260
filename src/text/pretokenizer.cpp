#include "text/pretokenizer.h"

#include "base/error.h"

namespace winnow::text {
namespace {

constexpr std::string_view kGlmStart =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})";
constexpr std::string_view kGlmEnd = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekNumbers = R"(\p{N}{1,3})";
constexpr std::string_view kDeepSeekCjk = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
// The file holds \r and \n of "[^\r\n" and "[\r\n]*" as the characters themselves.
constexpr std::string_view kDeepSeekWords = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
                                            "\r\n"
                                            R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
                                            "\r\n"
                                            R"(]*|\s*[)"
                                            "\r\n"
                                            R"(]+|\s+(?!\S)|\s+)";
// ByteLevel's own, when use_regex is true.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Split {
  std::string pattern;
  bool literal = false;
  std::string where;
};

// \r and \n may be spelt as escapes or stand there as they are.
std::string with_escaped_newlines(std::string_view pattern) {
  std::string out;
  for (const char c : pattern) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

bool same_pattern(const Split& split, std::string_view known) {
  return !split.literal && with_escaped_newlines(split.pattern) == with_escaped_newlines(known);
}

std::unique_ptr<PreTokenizer> known_scanner(const std::vector<Split>& splits) {
  const std::string glm = std::string(kGlmStart) + "{1,3}" + std::string(kGlmEnd);
  const std::string qwen2 = std::string(kGlmStart) + std::string(kGlmEnd);
  if (splits.size() == 1 && same_pattern(splits[0], glm)) return make_glm_pretokenizer(3);
  if (splits.size() == 1 && same_pattern(splits[0], qwen2)) return make_glm_pretokenizer(1);
  if (splits.size() == 3 && same_pattern(splits[0], kDeepSeekNumbers) &&
      same_pattern(splits[1], kDeepSeekCjk) && same_pattern(splits[2], kDeepSeekWords)) {
    return make_deepseek_pretokenizer();
  }
  return nullptr;
}

// Each split cuts every piece of the one before, on its own.
class SequencePreTokenizer final : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> steps)
      : steps_(std::move(steps)) {}

  void split(std::string_view text, size_t base, std::vector<size_t>& ends) const override {
    if (text.empty()) return;
    std::vector<size_t> pieces{text.size()}, finer;
    for (const auto& step : steps_) {
      finer.clear();
      size_t begin = 0;
      for (const size_t end : pieces) {
        step->split(text.substr(begin, end - begin), begin, finer);
        begin = end;
      }
      pieces.swap(finer);
    }
    for (const size_t end : pieces) ends.push_back(base + end);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

const json::Value& member(const json::Value& object,
                          std::string_view key,
                          const std::string& where) {
  const json::Value* value = object.find(key);
  if (!value) throw_error("{}: {} is missing", where, key);
  return *value;
}

bool flag(const json::Value& object,
          std::string_view key,
          bool fallback,
          const std::string& where) {
  const json::Value* value = object.find(key);
  if (!value || value->is_null()) return fallback;
  if (!value->is_bool())
    throw_error("{}.{}: {} instead of a boolean", where, key, value->kind_name());
  return value->as_bool();
}

Split read_split(const json::Value& step, const std::string& where) {
  const json::Value& behavior = member(step, "behavior", where);
  if (!behavior.is_string() || behavior.as_string() != "Isolated") {
    throw_error("{}.behavior: only Isolated is supported", where);
  }
  const json::Value& pattern = member(step, "pattern", where);
  for (const char* kind : {"Regex", "String"}) {
    const json::Value* text = pattern.find(kind);
    if (text && text->is_string()) {
      return {text->as_string(), kind == std::string_view("String"), where + ".pattern"};
    }
  }
  throw_error("{}.pattern: neither Regex nor String", where);
}

struct Steps {
  std::vector<Split> splits;
  bool byte_level = false;  // seen: must be the last
};

constexpr int kMaxSequenceDepth = 8;

void collect(const json::Value& step, const std::string& where, int depth, Steps& steps) {
  const json::Value& type = member(step, "type", where);
  const std::string name = type.is_string() ? type.as_string() : type.kind_name();
  if (steps.byte_level) throw_error("{}: {} behind ByteLevel is not supported", where, name);
  if (name == "Sequence" && depth < kMaxSequenceDepth) {
    const json::Value& list = member(step, "pretokenizers", where);
    if (!list.is_array()) throw_error("{}.pretokenizers: not an array", where);
    for (size_t i = 0; i < list.as_array().size(); ++i) {
      collect(list.as_array()[i], fmt::format("{}.pretokenizers[{}]", where, i), depth + 1, steps);
    }
  } else if (name == "Split") {
    steps.splits.push_back(read_split(step, where));
  } else if (name == "ByteLevel") {
    if (flag(step, "add_prefix_space", true, where)) {
      throw_error("{}.add_prefix_space: only false is supported", where);
    }
    if (flag(step, "use_regex", true, where)) {
      steps.splits.push_back({std::string(kGpt2), false, where});
    }
    steps.byte_level = true;
  } else {
    throw_error("{}.type: {} is not supported (known: Sequence, Split, ByteLevel)", where, name);
  }
}

}  // namespace

std::unique_ptr<PreTokenizer> load_pretokenizer(const json::Value& pre_tokenizer,
                                                const std::string& file) {
  Steps steps;
  collect(pre_tokenizer, file + ": pre_tokenizer", 0, steps);
  if (!steps.byte_level) {
    throw_error("{}: pre_tokenizer: no ByteLevel; only byte-level BPE is supported", file);
  }
  if (auto scanner = known_scanner(steps.splits)) return scanner;
  std::vector<std::unique_ptr<PreTokenizer>> regexes;
  for (const Split& split : steps.splits) {
    regexes.push_back(make_regex_pretokenizer(split.pattern, split.literal, split.where));
  }
  return std::make_unique<SequencePreTokenizer>(std::move(regexes));
}

}  // namespace winnow::text
