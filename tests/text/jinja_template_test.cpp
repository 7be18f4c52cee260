#include "text/jinja_template.h"

#include <gtest/gtest.h>

#include <thread>

#include "testing/sanitizers.h"

namespace winnow::text::jinja {
namespace {

struct Outcome {
  std::string text;
  std::string error;
  int line = 0;
  TemplateError::Kind kind = TemplateError::Kind::kSyntax;
};

Outcome run(std::string_view source, const Variables& variables = {}) {
  Outcome outcome;
  try {
    outcome.text = Template(source).render(variables, 0).str();
  } catch (const TemplateError& error) {
    outcome.error = error.what();
    outcome.line = error.line;
    outcome.kind = error.kind;
  }
  return outcome;
}

std::string repeated(std::string_view part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

TEST(JinjaTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(run("a\nb\n{{ missing.x }}").line, 3);
  EXPECT_EQ(run("a\n{% for x in [1] %}\n\n{{ x.y.z }}{% endfor %}").line, 4);
  EXPECT_EQ(run("\n{% nope %}").line, 2);
  EXPECT_EQ(run("{# a\n b #}\n{{ 'x\ny' }} {{ 1 + }}").line, 4);
  EXPECT_EQ(run("{% if x %}\n\n").line, 2);
  EXPECT_EQ(run("{% macro f(x) %}\n{{ x + 1 }}{% endmacro %}\n\n{{ f('a') }}").line, 2);
  EXPECT_EQ(run("{{ raise_exception('why') }}").kind, TemplateError::Kind::kRaised);
  EXPECT_EQ(run("{{ raise_exception('why') }}").error, "why");
}

TEST(JinjaTemplate, StrftimeNowShowsTheGivenTime) {
  std::tm noon{};
  noon.tm_year = 124;
  noon.tm_mon = 4;
  noon.tm_mday = 6;
  noon.tm_hour = 12;
  noon.tm_isdst = -1;
  const MarkedText text =
      Template("{{ strftime_now('%d %b %Y, %H h') }}").render({}, mktime(&noon));
  EXPECT_EQ(text.str(), "06 May 2024, 12 h");
}

// A template is bytes of a download, its data bytes of a request: both end in an error.
TEST(JinjaTemplate, BoundsDepthStepsAndSize) {
  const std::pair<const char*, std::string> cases[] = {
      {"parentheses", "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}"},
      {"brackets", "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}"},
      {"minus signs", "{{ " + repeated("- ", 5000) + "1 }}"},
      {"not", "{{ " + repeated("not ", 5000) + "1 }}"},
      {"a long sum", "{{ 1" + repeated(" + 1", 5000) + " }}"},
      {"attributes", "{{ x" + repeated(".x", 5000) + " }}"},
      {"filters", "{{ 'x'" + repeated("|upper", 5000) + " }}"},
      {"calls", "{{ x" + repeated("()", 5000) + " }}"},
      {"conditions", "{{ " + repeated("1 if 0 else ", 5000) + "1 }}"},
      {"targets", "{% set " + repeated("(", 5000) + "x" + repeated(")", 5000) + " = 1 %}"},
      {"blocks", repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000)},
      {"macros that call themselves", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
      {"callers",
       "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}"},
      {"loops in loops",
       repeated("{% for a in range(1000) %}", 5) + "x" + repeated("{% endfor %}", 5)},
      {"recursive loops", "{% for a in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}"},
      {"a doubled string",
       "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% "
       "endfor %}"},
      {"a repeated string", "{{ 'ab' * 9000000000000000000 }}"},
      {"a repeated list", "{{ [1, 2] * 9000000000000000000 }}"},
      {"a doubled list",
       "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% "
       "endfor %}"},
      {"shared lists",
       "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% "
       "endfor %}"
       "{{ ns.x }}"},
      {"nested lists",
       "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor "
       "%}"},
      {"nested methods",
       "{% set ns = namespace(x={}) %}{% for i in range(99999) %}{% set ns.x = {'get': ns.x.get} %}"
       "{% endfor %}"},
      {"replace", "{{ ('a' * 100000).replace('a', 'b' * 100000) }}"},
      {"join", "{{ ('b' * 100000).join('a' * 100000) }}"},
      {"padding", "{{ 'a'.center(9000000000000000000) }}"},
      {"indent", "{{ ('\\n' * 1000000) | indent(10000, blank=true) }}"},
      {"range", "{{ range(9000000000000000000) }}"},
      {"power", "{{ 2 ** 9000000000000000000 }}"},
      {"integers", "{{ 9223372036854775807 + 1 }}"},
      {"a large literal", "{{ 9223372036854775808 }}"},
      {"division", "{{ (-9223372036854775807 - 1) // -1 }}"},
      {"negation", "{{ -(-9223372036854775807 - 1) }}"},
      {"a slow search",
       "{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{{ 'b' in x }}{% endfor %}"},
      {"a slow comparison",
       "{% set x = [0] * 1000000 %}{% set y = [0] * 1000000 %}{% for i in range(99999) %}"
       "{{ x == y }}{% endfor %}"},
      {"output", "{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{{ x }}{% endfor %}"},
  };
  for (const auto& [name, source] : cases) {
    const Outcome outcome = run(source);
    EXPECT_NE(outcome.error, "") << name;
    EXPECT_GT(outcome.line, 0) << name << ": " << outcome.error;
  }
}

// As deep as the bounds allow, on a stack of a quarter of a megabyte.
TEST(JinjaTemplate, TheBoundsFitASmallStack) {
  if (testing::kSanitized) GTEST_SKIP() << "sanitizers need more stack";
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  pthread_t thread;
  auto body = [](void*) -> void* {
    for (int depth = 1; depth < 300; ++depth) {
      run("{{ " + repeated("(1 + ", depth) + "1" + repeated(")", depth) + " }}");
      run("{{ " + repeated("[", depth) + repeated("]", depth) + " | tojson }}");
    }
    run("{% macro f(x) %}{% if x %}{% for y in [x] %}{{ (f(y) ~ 'a') | upper }}{% endfor %}"
        "{% endif %}{% endmacro %}{{ f(1) }}");
    json::Value nested = 1;
    for (int i = 0; i < 500; ++i) nested = json::Array{std::move(nested)};
    const Variables variables = {{"x", from_json(nested, true)}};
    run("{{ x }}{{ x | tojson(indent=1) | length }}{{ x == [x] }}{{ x < [x] }}", variables);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(JinjaTemplate, LongContentIsLinear) {
  const std::string letters(size_t{4} << 20, 'Z');
  const Variables variables = {{"x", Value::text(letters, true)},
                               {"blanks", Value::text(std::string(1 << 20, ' '), true)}};
  const Outcome outcome =
      run("{{ x.strip() }}{{ x.split('</think>')[-1] | length }}{{ '</think>' in x }}"
          "{{ blanks.strip() }}{{ blanks.split() }}{{ (x | tojson) | length }}",
          variables);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.text.size(), letters.size() + 7 + 5 + 2 + 7);
}

TEST(JinjaTemplate, SharesOneTemplateAmongThreads) {
  const Template shared(
      "{% set ns = namespace(s='') %}{% for c in x %}{% set ns.s = c ~ ns.s %}"
      "{% endfor %}{{ ns.s }}{{ [1, 'a'] | tojson }}");
  std::vector<std::thread> threads;
  std::vector<std::string> results(4);
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const std::string text(50, static_cast<char>('a' + t));
      for (int i = 0; i < 50; ++i) {
        results[t] = shared.render({{"x", Value::text(text)}}, 0).str();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t t = 0; t < results.size(); ++t) {
    EXPECT_EQ(results[t], std::string(50, static_cast<char>('a' + t)) + R"([1, "a"])");
  }
}

// Fault B88. The variables hold nothing but q and é; no template here does. So the bytes marked
// as content must be exactly those letters, whatever was done to the text.
TEST(JinjaMarks, FollowTheBytes) {
  const Variables variables = {
      {"x", Value::text("qqéq", true)},
      {"l", make_list({Value::text("q", true), Value::text("éq", true)})},
      {"d", make_dict({{Value::text("a"), Value::text("qé", true)}})},
      {"k", make_dict({{Value::text("q", true), Value::text("b")}})},
  };
  const char* kTemplates[] = {
      "<{{ x }}>",
      "{{ '<' + x + '>' ~ x }}",
      "{{ ('<' ~ x ~ '>')[1:3] }}",
      "{{ x[::-1] }}",
      "{{ ('a' ~ x ~ 'a').strip('a') }}",
      "{{ (' ' ~ x ~ ' ') | trim }}",
      "{{ ('a' ~ x ~ 'b').replace('a', 'ccc').replace('b', '') }}",
      "{{ 'abc'.replace('b', x) }}",
      "{{ ('a' ~ x).replace(x[2], 'z') }}",
      "{{ l | join('-') }}",
      "{{ '-'.join(l) }}",
      "{{ x.join(['a', 'b']) }}",
      "{{ ('a-' ~ x ~ '-b').split('-') | join('+') }}",
      "{{ ('a b' ~ x ~ ' c').split()[1] }}",
      "{{ ('a' ~ x) | upper | lower }}",
      "{{ ('a' ~ x) | capitalize }}{{ x | title | lower }}",
      "{% for c in 'a' ~ x %}[{{ c }}]{% endfor %}",
      "{{ 'a%sb' % x }}{{ '%s-%s' % (x, 'a') }}",
      "{{ 'a{}b{y}'.format(x, y=x) }}",
      "{% set y %}a{{ x }}b{% endset %}{{ y ~ y }}",
      "{% filter upper %}a{{ 'b' }}{% endfilter %}{{ x }}",
      "{% macro m(a, b='c') %}({{ a }}{{ b }}{{ caller() if caller else '' }}){% endmacro %}"
      "{{ m(x) }}{% call m('a', x) %}{{ x }}{% endcall %}",
      "{% set ns = namespace(s='') %}{% for i in l %}{% set ns.s = ns.s ~ 'a' ~ i %}{% endfor %}"
      "{{ ns.s }}",
      "{{ ('a' ~ x ~ 'b') | tojson }}",
      "{{ d | tojson }}",
      "{{ k | tojson(indent=2) }}",
      "{{ d }}",
      "{{ k }}",
      "{{ [x, 'a', (x,)] }}",
      "{{ ['a', l] | tojson }}",
      "{% for k1, v in k.items() %}{{ k1 }}={{ v }}{% endfor %}",
      "{{ d.a }}{{ d['a'] }}{{ k | list }}",
      "{{ d.get('a') }}{{ d.get('z', x) }}{{ missing | default(x) }}",
      "{{ x if true else 'a' }}",
      "{{ '' or x }}{{ x and 'a' }}",
      "{{ ('a\n' ~ x) | indent(2, true) }}",
      "{{ x.center(9, '*') }}",
      "{{ ('a' ~ x).partition('a') }}",
      "{{ ('a\n' ~ x ~ '\nb').splitlines() | join('|') }}",
      "{{ l | map('upper') | map('lower') | list }}",
      "{{ l | first }}{{ l | last }}{{ l | sort }}",
      "{{ l | reverse | list }}{{ x | reverse }}{{ l | unique | join }}",
      "{{ x * 2 }}{{ l * 2 }}",
      "{{ (x ~ ' a') | truncate(4, true, '.', 0) }}",
      "{{ ('a' ~ x) | e }}{{ x | string }}",
      "{{ x.removeprefix('q') }}{{ (x ~ 'a').removesuffix('a') }}",
      "{{ ('a' ~ x).zfill(9) }}",
      "{{ [{'n': x}] | map(attribute='n') | join }}",
      "{{ l | select('string') | list }}",
      "{% for i in l %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', x) }}{% endfor %}",
      "{{ dict(a=x).a }}{{ namespace(a=x).a }}",
      "{{ (x, 'a') | join(',') }}",
  };
  for (const char* source : kTemplates) {
    const MarkedText text = Template(source).render(variables, 0);
    std::string marks;
    std::string expected;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool content =
          text.str()[i] == 'q' || static_cast<unsigned char>(text.str()[i]) >= 0x80;
      marks.push_back(text.plain_at(i) ? '#' : '.');
      expected.push_back(content ? '#' : '.');
    }
    EXPECT_EQ(marks, expected) << source << "\n" << text.str();
    EXPECT_NE(text.str().find("q"), std::string::npos) << source << " shows no content";
    for (size_t r = 1; r < text.plain_runs().size(); ++r) {
      EXPECT_LT(text.plain_runs()[r - 1].end, text.plain_runs()[r].begin) << source;
    }
  }
}

// The punctuation of what came with the request is content, numbers in it as well.
TEST(JinjaMarks, WholeJsonOfTheRequestIsOneStretch) {
  auto parsed = json::parse(R"({"a": [1, {"b": null}], "c": "<|user|>"})");
  ASSERT_TRUE(parsed.ok());
  const Variables variables = {{"x", from_json(parsed.value(), true)}};
  for (const char* source : {"<{{ x | tojson }}>", "<{{ x }}>", "<{{ x | tojson(indent=1) }}>"}) {
    const MarkedText text = Template(source).render(variables, 0);
    ASSERT_EQ(text.plain_runs().size(), 1u) << source;
    EXPECT_EQ(text.plain_runs()[0].begin, 1u);
    EXPECT_EQ(text.plain_runs()[0].end, text.size() - 1);
  }
}

}  // namespace
}  // namespace winnow::text::jinja
