// Tests: `x is defined` and the like.
#include <algorithm>

#include "text/jinja_builtins.h"

namespace winnow::text::jinja {

namespace {

using Kind = Value::Kind;

template <Kind kind>
bool is_kind(Interpreter&, const Value& input, Arguments&) {
  return input.is(kind);
}

bool is_defined(Interpreter&, const Value& input, Arguments&) { return !input.is_undefined(); }
bool is_true(Interpreter&, const Value& input, Arguments&) {
  return input.is(Kind::kBool) && input.as_bool();
}
bool is_false(Interpreter&, const Value& input, Arguments&) {
  return input.is(Kind::kBool) && !input.as_bool();
}
bool is_number(Interpreter&, const Value& input, Arguments&) { return input.is_number(); }

// Python's Undefined has a length and items to ask for, so it passes.
bool is_sequence(Interpreter&, const Value& input, Arguments&) {
  return input.is_text() || input.is(Kind::kDict) || input.is_undefined() ||
         (input.is(Kind::kList) && input.as_list().kind != List::Kind::kIterator);
}
bool is_iterable(Interpreter&, const Value& input, Arguments&) {
  return input.is_text() || input.is(Kind::kDict) || input.is(Kind::kList) ||
         input.is_undefined() || input.is(Kind::kLoop);
}
bool is_callable(Interpreter&, const Value& input, Arguments&) {
  return input.is(Kind::kCallable) || input.is(Kind::kLoop) || input.is_undefined();
}

bool is_upper(Interpreter&, const Value& input, Arguments&) {
  return has_case(to_text(input).str(), true);
}
bool is_lower(Interpreter&, const Value& input, Arguments&) {
  return has_case(to_text(input).str(), false);
}

const Value& other(std::string_view name, const Arguments& arguments) {
  if (arguments.positional.size() != 1) type_error("test '{}' takes one argument", name);
  return arguments.positional[0];
}

bool divisible(const Value& input, const Value& by, int64_t rest) {
  const Value result = binary_operation("%", input, by);
  return equal(result, Value(rest));
}
bool is_odd(Interpreter&, const Value& input, Arguments&) {
  return divisible(input, Value(int64_t{2}), 1);
}
bool is_even(Interpreter&, const Value& input, Arguments&) {
  return divisible(input, Value(int64_t{2}), 0);
}
bool is_divisible_by(Interpreter&, const Value& input, Arguments& arguments) {
  return divisible(input, other("divisibleby", arguments), 0);
}

bool is_equal(Interpreter&, const Value& input, Arguments& arguments) {
  return equal(input, other("eq", arguments));
}
bool is_unequal(Interpreter&, const Value& input, Arguments& arguments) {
  return !equal(input, other("ne", arguments));
}
bool is_less(Interpreter&, const Value& input, Arguments& arguments) {
  return compare(input, other("lt", arguments), "<") < 0;
}
bool is_less_or_equal(Interpreter&, const Value& input, Arguments& arguments) {
  return compare(input, other("le", arguments), "<=") <= 0;
}
bool is_greater(Interpreter&, const Value& input, Arguments& arguments) {
  return compare(input, other("gt", arguments), ">") > 0;
}
bool is_greater_or_equal(Interpreter&, const Value& input, Arguments& arguments) {
  return compare(input, other("ge", arguments), ">=") >= 0;
}
bool is_in(Interpreter&, const Value& input, Arguments& arguments) {
  return contains(other("in", arguments), input);
}

// Python compares identities. Small numbers and equal literals are the same object there.
bool is_same(Interpreter&, const Value& input, Arguments& arguments) {
  const Value& that = other("sameas", arguments);
  if (input.kind() != that.kind()) return false;
  if (input.is(Kind::kList)) return &input.as_list() == &that.as_list();
  if (input.is(Kind::kDict)) return &input.as_dict() == &that.as_dict();
  return equal(input, that);
}

bool is_filter(Interpreter&, const Value& input, Arguments&) {
  return input.is_text() && find_filter(input.as_str());
}
bool is_test(Interpreter&, const Value& input, Arguments&) {
  return input.is_text() && find_test(input.as_str());
}

struct Row {
  std::string_view name;
  Test test;
};

constexpr Row kTests[] = {
    {"!=", is_unequal},
    {"<", is_less},
    {"<=", is_less_or_equal},
    {"==", is_equal},
    {">", is_greater},
    {">=", is_greater_or_equal},
    {"boolean", is_kind<Kind::kBool>},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisible_by},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"even", is_even},
    {"false", is_false},
    {"filter", is_filter},
    {"float", is_kind<Kind::kFloat>},
    {"ge", is_greater_or_equal},
    {"greaterthan", is_greater},
    {"gt", is_greater},
    {"in", is_in},
    {"integer", is_kind<Kind::kInt>},
    {"iterable", is_iterable},
    {"le", is_less_or_equal},
    {"lessthan", is_less},
    {"lower", is_lower},
    {"lt", is_less},
    {"mapping", is_kind<Kind::kDict>},
    {"ne", is_unequal},
    {"none", is_kind<Kind::kNone>},
    {"number", is_number},
    {"odd", is_odd},
    {"sameas", is_same},
    {"sequence", is_sequence},
    {"string", is_kind<Kind::kText>},
    {"test", is_test},
    {"true", is_true},
    {"undefined", is_kind<Kind::kUndefined>},
    {"upper", is_upper},
};

}  // namespace

Test find_test(std::string_view name) {
  auto row = std::find_if(std::begin(kTests), std::end(kTests),
                          [&](const Row& candidate) { return candidate.name == name; });
  return row == std::end(kTests) ? nullptr : row->test;
}

}  // namespace winnow::text::jinja
