// The template engine against Python's Jinja2, byte for byte: tests/data/chat/snippets.json, and
// every chat template of the project over every conversation of tests/data/chat/conversations.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/mapped_file.h"
#include "testing/paths.h"
#include "text/chat_jinja_format.h"
#include "text/jinja_template.h"

namespace winnow::text::jinja {
namespace {

struct Case {
  std::string name;
  std::string source;
  json::Value variables;
};

json::Value read_json(const std::string& path) {
  auto parsed = json::parse(read_file(path));
  EXPECT_TRUE(parsed.ok()) << path << ": " << parsed.status().message;
  return parsed.ok() ? parsed.value() : json::Value();
}

std::vector<Case> snippet_cases() {
  const json::Value variables = read_json(testing::data_path("chat/snippet_variables.json"));
  const json::Value snippets = read_json(testing::data_path("chat/snippets.json"));
  std::vector<Case> cases;
  for (const json::Value& snippet : snippets.as_array()) {
    cases.push_back({snippet.as_string(), snippet.as_string(), variables});
  }
  return cases;
}

// Conversations as they are, not normalized: what the templates make of odd ones is compared too.
std::vector<Case> conversation_cases() {
  std::vector<std::pair<std::string, std::string>> templates = {
      {"deepseek_v31", kDeepseekV31Template},
      {"glm5", read_file(std::string(WINNOW_SOURCE_DIR) + "/tools/glm5_chat_template.jinja")}};
  for (const char* name : {"glm52", "kimi_k2", "chatml"}) {
    templates.emplace_back(name,
                           read_file(testing::data_path(std::string("chat/") + name + ".jinja")));
  }
  const json::Value conversations = read_json(testing::data_path("chat/conversations.json"));
  std::vector<Case> cases;
  for (const auto& [name, source] : templates) {
    for (size_t i = 0; i < conversations.as_array().size(); ++i) {
      json::Value variables = conversations.as_array()[i];
      if (!variables.find("add_generation_prompt")) variables.set("add_generation_prompt", true);
      if (!variables.find("tools")) variables.set("tools", nullptr);
      variables.set("bos_token", "<bos>");
      variables.set("eos_token", "<eos>");
      cases.push_back({name + ", conversation " + std::to_string(i), source, variables});
    }
  }
  return cases;
}

// The texts, or nothing for a case that fails. Exit status of the script in *status.
std::vector<json::Value> run_oracle(const std::vector<Case>& cases, int* status) {
  json::Array input;
  for (const Case& c : cases) {
    input.push_back(json::Object{{"template", c.source}, {"variables", c.variables}});
  }
  const auto path = std::filesystem::temp_directory_path() /
                    ("winnow_jinja_cases_" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << json::dump(input);
  const std::string script = std::string(WINNOW_SOURCE_DIR) + "/tests/text/jinja_oracle.py";
  std::string output;
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    output.clear();
    const std::string command = std::string(python) + " " + script + " " + path.string();
    FILE* pipe = popen(command.c_str(), "r");
    char buffer[1 << 16];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
    *status = WEXITSTATUS(pclose(pipe));
    if (*status == 0) break;
  }
  std::filesystem::remove(path);
  if (*status != 0) return {};
  auto parsed = json::parse(output);
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() ? parsed.value().as_array() : json::Array{};
}

void compare_with_oracle(const std::vector<Case>& cases) {
  int status = 0;
  const std::vector<json::Value> expected = run_oracle(cases, &status);
  if (status == 77 || status == 127) GTEST_SKIP() << "needs python3 with jinja2";
  ASSERT_EQ(status, 0);
  ASSERT_EQ(expected.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    Variables variables;
    for (const auto& [name, value] : cases[i].variables.as_object()) {
      variables.emplace_back(name, from_json(value, true));
    }
    json::Value got;
    std::string error;
    try {
      got = Template(cases[i].source).render(variables, 0).str();
    } catch (const TemplateError& failure) {
      error = failure.what();
      EXPECT_GT(failure.line, 0) << cases[i].name;
    }
    if (const json::Value* text = expected[i].find("text")) {
      EXPECT_EQ(error, "") << cases[i].name;
      EXPECT_EQ(json::dump(got), json::dump(*text)) << cases[i].name;
    } else {
      EXPECT_NE(error, "") << cases[i].name << "\nPython fails with " << json::dump(expected[i])
                           << ", we print " << json::dump(got);
    }
  }
}

TEST(JinjaOracle, SnippetsPrintWhatPythonPrints) { compare_with_oracle(snippet_cases()); }
TEST(JinjaOracle, ChatTemplatesPrintWhatPythonPrints) { compare_with_oracle(conversation_cases()); }

}  // namespace
}  // namespace winnow::text::jinja
