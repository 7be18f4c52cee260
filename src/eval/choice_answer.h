// Letters of multiple-choice answers.
#pragma once

#include <optional>
#include <string_view>

namespace winnow::eval {

// The first match of Python's (?i)Answer\s*:\s*([A-D]): the letter as it is written, so "answer: b"
// gives 'b', which the reference counts as wrong. "**Answer:** B" does not match.
std::optional<char> answer_letter(std::string_view text);

// What a reader would take: the last "Answer: B" or "answer is (B)" with emphasis, brackets,
// \boxed{} or \text{} around the letter, in either case; else the last \boxed{B}; else a text that
// is nothing but the letter. Upper case.
std::optional<char> lenient_answer_letter(std::string_view text);

// LongBench v2's order: "The correct answer is (B)", "The correct answer is B", "Answer: B",
// "answer is B", "*" and line ends removed first. Upper case.
std::optional<char> longbench_letter(std::string_view text);

}  // namespace winnow::eval
