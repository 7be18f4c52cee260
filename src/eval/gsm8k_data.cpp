// data/gsm8k/test.jsonl inside the program, so that the evaluation needs no download and no path.
#include "eval/gsm8k_task.h"

// The compiler has no #embed.
asm(".section .rodata\n"
    ".global winnow_gsm8k_begin\n"
    "winnow_gsm8k_begin:\n"
    ".incbin \"" WINNOW_GSM8K_FILE
    "\"\n"
    ".global winnow_gsm8k_end\n"
    "winnow_gsm8k_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" const char winnow_gsm8k_begin[];
extern "C" const char winnow_gsm8k_end[];

namespace winnow::eval {

std::string_view gsm8k_test_jsonl() {
  return {winnow_gsm8k_begin, static_cast<size_t>(winnow_gsm8k_end - winnow_gsm8k_begin)};
}

}  // namespace winnow::eval
