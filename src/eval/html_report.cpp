#include "eval/html_report.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <utility>

#include "base/error.h"
#include "eval/html_page.h"
#include "eval/sample_file.h"
#include "text/markup.h"

namespace winnow::eval {
namespace {

std::string without_middle(std::string_view text) {
  constexpr size_t kKept = 6000;
  if (text.size() <= 2 * kKept) return std::string(text);
  return fmt::format("{}\n[... {} bytes left out; the samples file has them ...]\n{}",
                     text.substr(0, kKept), text.size() - 2 * kKept,
                     text.substr(text.size() - kKept));
}

std::string table_row(std::string_view name, std::string_view value) {
  return fmt::format("<tr><th>{}</th><td class=\"n\">{}</td></tr>\n", text::escape_markup(name),
                     text::escape_markup(value));
}

std::string error_text(const std::optional<double>& error) {
  return error ? fmt::format("{:.4f}", *error) : "unknown: only one";
}

std::string figures(const Summary& s) {
  std::string out = "<table>\n";
  out += table_row("Score", fmt::format("{:.3f}", s.score));
  out += table_row("standard error over repeats", error_text(s.repeats_error));
  out += table_row("standard error over questions", error_text(s.questions_error));
  out += table_row("questions", std::to_string(s.num_questions));
  out += table_row("repeats", std::to_string(s.num_repeats));
  out += table_row("right", std::to_string(s.num_right));
  out += table_row("wrong", std::to_string(s.num_wrong));
  out += table_row("invalid: no answer found", std::to_string(s.num_invalid));
  out += table_row("refused by the server", std::to_string(s.num_refused));
  out += table_row("failed, in no score", std::to_string(s.num_failed));
  out += table_row("truncated at the token limit", std::to_string(s.num_truncated));
  out += table_row("mean completion tokens", fmt::format("{:.1f}", s.mean_completion_tokens));
  out += "</table>\n";
  if (s.categories.empty()) return out;
  out += "<table>\n<tr><th>category</th><th>score</th><th>samples</th></tr>\n";
  for (const CategoryScore& c : s.categories) {
    out += fmt::format("<tr><td>{}</td><td class=\"n\">{:.3f}</td><td class=\"n\">{}</td></tr>\n",
                       text::escape_markup(c.name), c.score, c.num_samples);
  }
  return out + "</table>\n";
}

std::string choice(std::string_view name,
                   std::string_view all,
                   const std::vector<std::string>& values) {
  std::string out = fmt::format("<select name=\"{}\"><option value=\"\">{}</option>", name, all);
  for (const std::string& value : values) {
    out += fmt::format("<option>{}</option>", text::escape_markup(value));
  }
  return out + "</select>\n";
}

std::string filters(const Summary& summary) {
  std::vector<std::string> categories;
  for (const CategoryScore& c : summary.categories) categories.push_back(c.name);
  std::vector<std::string> repeats;
  for (int64_t r = 0; r < summary.num_repeats; ++r) repeats.push_back(std::to_string(r));
  return "<form>\n" +
         choice("outcome", "any outcome",
                {"right", "wrong", "invalid", "refused", "failed", "truncated"}) +
         choice("category", "any category", categories) + choice("repeat", "any repeat", repeats) +
         "<input name=\"text\" type=\"search\" placeholder=\"text\">\n"
         "<output id=\"shown\"></output>\n</form>\n";
}

std::string titled(std::string_view title, std::string_view text) {
  if (text.empty()) return {};
  return fmt::format("<small>{}</small><pre>{}</pre>\n", title,
                     text::escape_markup(without_middle(text)));
}

std::string sample_html(const Sample& s) {
  std::string out = fmt::format(
      "<details class=\"s {0}\" data-o=\"{0}\" data-c=\"{1}\" data-r=\"{2}\" data-t=\"{3}\">"
      "<summary><b>{0}</b> {4} <small>repeat {2}, {5} tokens{6}</small></summary>\n",
      s.outcome_name(), text::escape_markup(s.category), s.repeat, s.truncated() ? 1 : 0,
      text::escape_markup(s.id), s.completion_tokens, s.truncated() ? ", truncated" : "");
  out += titled("prompt", s.prompt);
  out += titled("reasoning", s.reasoning);
  out += titled("answer", s.response);
  out += titled("error", s.error);
  out += fmt::format("<table>{}{}{}</table></details>\n", table_row("right answer", s.label),
                     table_row("extracted answer", s.verdict.extracted),
                     table_row("score", fmt::format("{:.1f}", s.score())));
  return out;
}

std::string settings_html(const SampleFileHeader& header) {
  std::string out = "<table>\n";
  for (const auto& [name, value] : header.settings) {
    out += table_row(name, value.is_string() ? value.as_string() : json::dump(value));
  }
  return out + "</table>\n";
}

}  // namespace

void write_html_report(const std::string& path,
                       const std::string& samples_path,
                       const Summary& summary) {
  std::ofstream file(path, std::ios::binary);
  const SampleFileHeader header = read_sample_header(samples_path);
  file << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>"
       << text::escape_markup(header.task + ", " + header.model) << "</title>\n<style>"
       << kPageStyle << "</style></head><body>\n<h1>" << text::escape_markup(header.task)
       << "</h1>\n<p>" << text::escape_markup(header.model) << " at "
       << text::escape_markup(header.server) << "</p>\n"
       << figures(summary) << "<details><summary>settings</summary>" << settings_html(header)
       << titled("in front of every prompt", header.common_prefix) << "</details>\n"
       << filters(summary);
  // A question that failed and was asked again has its last sample here alone.
  std::map<std::pair<std::string, int64_t>, int64_t> last;
  int64_t number = 0;
  read_samples(samples_path, [&](const Sample& s) { last[{s.id, s.repeat}] = number++; });
  number = 0;
  read_samples(samples_path, [&](const Sample& s) {
    if (last[{s.id, s.repeat}] == number++) file << sample_html(s);
  });
  file << "<script>" << kPageScript << "</script></body></html>\n";
  if (!file.flush()) throw_error("{}: cannot be written", path);
}

}  // namespace winnow::eval
