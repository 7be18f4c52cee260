// A template, a zero byte, and the JSON object of its variables: renders or fails, nothing else.
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "text/jinja_template.h"

using namespace winnow;
using namespace winnow::text;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  jinja::Variables variables = {{"x", jinja::Value::text("some <text>", true)}};
  if (zero != std::string_view::npos) {
    auto parsed = json::parse(input.substr(zero + 1));
    if (parsed.ok() && parsed.value().is_object()) {
      for (const auto& [name, value] : parsed.value().as_object()) {
        variables.emplace_back(name, jinja::from_json(value, true));
      }
    }
  }
  try {
    const jinja::Template program(input.substr(0, zero));
    const jinja::MarkedText text = program.render(variables, 0, {.max_steps = 20'000});
    size_t end = 0;
    for (const auto& run : text.plain_runs()) {
      if (run.begin >= run.end || run.end > text.size() || (end > 0 && run.begin <= end)) abort();
      end = run.end;
    }
  } catch (const jinja::TemplateError&) {
  }
  return 0;
}
