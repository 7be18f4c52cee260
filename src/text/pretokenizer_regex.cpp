// Patterns without a scanner of their own, by PCRE2's JIT. Of characters it is told by number: its
// own tables are those of the system it came with (Debian 12: Unicode 14).
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "base/error.h"
#include "base/log.h"
#include "text/pretokenizer.h"
#include "text/pretokenizer_pattern.h"
#include "text/unicode_utf8.h"

namespace winnow::text {
namespace {

// A pattern that backtracks more than this at one place, or needs more stack (heap memory, not the
// thread's), fails there instead of stalling a worker.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr size_t kJitStackStartBytes = 32 * 1024;
constexpr size_t kJitStackMaxBytes = 8 * 1024 * 1024;

template <auto free>
struct Deleter {
  template <typename T>
  void operator()(T* p) const {
    free(p);
  }
};
using Code = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack_free>>;

// What matching writes to; one a thread, since it costs more to make than a short match does.
struct Matching {
  MatchData data{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};
  JitStack stack{pcre2_jit_stack_create(kJitStackStartBytes, kJitStackMaxBytes, nullptr)};

  Matching() {
    WINNOW_CHECK(data && context && stack, "PCRE2 is out of memory");
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    pcre2_set_match_limit(context.get(), kMatchLimit);
  }
};

class RegexPreTokenizer final : public PreTokenizer {
 public:
  explicit RegexPreTokenizer(Code code) : code_(std::move(code)) {}

  void split(std::string_view text, size_t base, std::vector<size_t>& ends) const override {
    thread_local const Matching matching;
    size_t done = 0;  // where the last piece ended
    const auto push = [&](size_t end) {
      if (end == done) return;
      ends.push_back(base + end);
      done = end;
    };
    for (size_t at = 0; at < text.size();) {
      const int rc =
          pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                      PCRE2_NO_UTF_CHECK, matching.data.get(), matching.context.get());
      if (rc == PCRE2_ERROR_NOMATCH) break;
      if (rc < 0) {
        // One piece for the rest: BPE is linear whatever the piece, and the text is not lost.
        log::warn("tokenizer pattern gave up after {} of {} bytes (PCRE2 error {})", at,
                  text.size(), rc);
        break;
      }
      const size_t* const range = pcre2_get_ovector_pointer(matching.data.get());
      push(range[0]);  // what no alternative took
      push(range[1]);
      at = range[1];
      if (range[0] == range[1] && at < text.size()) at += decode_trusted(text.data() + at).size;
    }
    push(text.size());
  }

 private:
  Code code_;
};

std::string message_of(int error) {
  std::array<unsigned char, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

std::unique_ptr<PreTokenizer> make_regex_pretokenizer(const std::string& pattern,
                                                      bool literal,
                                                      const std::string& where) {
  const std::string translated = literal ? pattern : translate_pattern(pattern, where);
  // Oniguruma's Ruby syntax: ^ and $ are those of lines. \C would match part of a character.
  const uint32_t options =
      PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
  const CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                          options, &error, &offset, context.get()));
  if (!code) throw_error("{}: {} at \"{}\"", where, message_of(error), translated.substr(offset));
  // Where the JIT is missing the interpreter takes over: slower, the same pieces.
  if (const int rc = pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE); rc != 0) {
    log::warn("{}: no JIT for this pattern ({}); tokenizing will be slow", where, message_of(rc));
  }
  return std::make_unique<RegexPreTokenizer>(std::move(code));
}

}  // namespace winnow::text
