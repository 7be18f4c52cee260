// Filters of lists and dicts.
#include <algorithm>
#include <unordered_set>

#include "text/jinja_builtins.h"

namespace winnow::text::jinja {

namespace {

Value make_iterator(std::vector<Value> items) {
  return make_list(std::move(items), List::Kind::kIterator);
}

// "a.b.0" is three steps; a number alone is an index.
Value attribute_path(const Value& item, const Value& path) {
  if (!path.is_text()) return get_item(item, path);
  const std::string& text = path.as_str();
  Value value = item;
  for (size_t at = 0; at <= text.size();) {
    const size_t dot = std::min(text.find('.', at), text.size());
    const std::string step = text.substr(at, dot - at);
    at = dot + 1;
    const bool numeric = !step.empty() && step.size() < 10 &&
                         step.find_first_not_of("0123456789") == std::string::npos;
    value = get_item(value, numeric ? Value(int64_t{std::stol(step)}) : Value::text(step));
  }
  return value;
}

Value folded_case(const Value& value) {
  if (!value.is_text()) return value;
  return map_characters(value.as_text(), [](char32_t c, char32_t) { return to_lower(c); });
}

Value length_filter(Interpreter&, const Value& input, Arguments&) { return Value(length(input)); }

Value first(Interpreter&, const Value& input, Arguments&) {
  if (input.is_text()) return get_item(input, Value(int64_t{0}));
  const std::vector<Value> items = iterate(input);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(Interpreter&, const Value& input, Arguments&) {
  if (input.is_text()) return get_item(input, Value(int64_t{-1}));
  const std::vector<Value> items = iterate(input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value list(Interpreter&, const Value& input, Arguments&) { return make_list(iterate(input)); }

Value items(Interpreter&, const Value& input, Arguments&) {
  if (input.is_undefined()) return make_iterator({});
  if (!input.is(Value::Kind::kDict)) type_error("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.as_dict().items) {
    pairs.push_back(make_list({key, value}, List::Kind::kTuple));
  }
  return make_iterator(std::move(pairs));
}

Value join(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  Parameters parameters("join", arguments, {"d", "attribute"});
  const MarkedText separator = parameters.get(0) ? to_text(*parameters.get(0)) : MarkedText();
  MarkedText out;
  bool begun = false;
  for (const Value& item : iterate(input)) {
    if (begun) out.append(separator);
    begun = true;
    append_text(out, parameters.get(1) ? attribute_path(item, *parameters.get(1)) : item);
  }
  interpreter.charge(out.size() / 64);
  return out;
}

Value reverse(Interpreter&, const Value& input, Arguments&) {
  if (input.is_text()) return get_slice(input, None{}, None{}, Value(int64_t{-1}));
  std::vector<Value> reversed = iterate(input);
  std::reverse(reversed.begin(), reversed.end());
  return make_iterator(std::move(reversed));
}

// What an item is ordered by: each of the comma-separated attributes, case folded.
std::vector<Value> sort_keys(const Value& item, const Value* attribute, bool case_sensitive) {
  std::vector<Value> keys;
  if (!attribute || attribute->is(Value::Kind::kNone)) {
    keys.push_back(item);
  } else if (!attribute->is_text()) {
    keys.push_back(get_item(item, *attribute));
  } else {
    const std::string& paths = attribute->as_str();
    for (size_t at = 0; at <= paths.size();) {
      const size_t comma = std::min(paths.find(',', at), paths.size());
      keys.push_back(attribute_path(item, Value::text(paths.substr(at, comma - at))));
      at = comma + 1;
    }
  }
  if (!case_sensitive) {
    for (Value& key : keys) key = folded_case(key);
  }
  return keys;
}

int compare_keys(const std::vector<Value>& a, const std::vector<Value>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return compare(a[i], b[i], "<");
  }
  return 0;
}

using Keyed = std::pair<std::vector<Value>, Value>;

// Merge sort of our own: a comparison that throws or contradicts itself (NaN) must stay harmless.
void stable_sort_keyed(std::vector<Keyed>& items, bool descending) {
  std::vector<Keyed> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t to = begin; to < end; ++to) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const int order = compare_keys(items[right].first, items[left].first);
          take_right = descending ? order > 0 : order < 0;
        }
        merged[to] = std::move(take_right ? items[right++] : items[left++]);
      }
    }
    items.swap(merged);
  }
}

std::vector<Value> sorted(Interpreter& interpreter,
                          std::vector<Value> values,
                          const Value* attribute,
                          bool case_sensitive,
                          bool descending) {
  std::vector<Keyed> keyed;
  for (Value& value : values) {
    std::vector<Value> keys = sort_keys(value, attribute, case_sensitive);
    keyed.emplace_back(std::move(keys), std::move(value));
  }
  interpreter.charge(keyed.size());
  stable_sort_keyed(keyed, descending);
  std::vector<Value> out;
  out.reserve(keyed.size());
  for (Keyed& item : keyed) out.push_back(std::move(item.second));
  return out;
}

Value sort(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  Parameters parameters("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  return make_list(sorted(interpreter, iterate(input), parameters.get(2), parameters.flag(1, false),
                          parameters.flag(0, false)));
}

Value dictsort(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  Parameters parameters("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!input.is(Value::Kind::kDict)) {
    input.require_defined();
    type_error("dictsort() needs a dict, not {}", input.type_name());
  }
  const std::string by = parameters.get(1) ? parameters.text(1).str() : "key";
  if (by != "key" && by != "value") {
    type_error("You can only sort by either \"key\" or \"value\"");
  }
  const Value place(int64_t{by == "value"});
  Arguments none;
  const Value pairs = items(interpreter, input, none);
  return make_list(sorted(interpreter, iterate(pairs), &place, parameters.flag(0, false),
                          parameters.flag(2, false)));
}

Value extreme(const Value& input, const Parameters& parameters, bool largest) {
  const std::vector<Value> values = iterate(input);
  if (values.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  auto keys = [&](size_t i) {
    return sort_keys(values[i], parameters.get(1), parameters.flag(0, false));
  };
  for (size_t i = 1; i < values.size(); ++i) {
    const int order = compare_keys(keys(i), keys(best));
    if (largest ? order > 0 : order < 0) best = i;
  }
  return values[best];
}

Value min_filter(Interpreter&, const Value& input, Arguments& arguments) {
  return extreme(input, Parameters("min", arguments, {"case_sensitive", "attribute"}), false);
}
Value max_filter(Interpreter&, const Value& input, Arguments& arguments) {
  return extreme(input, Parameters("max", arguments, {"case_sensitive", "attribute"}), true);
}

Value unique(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  Parameters parameters("unique", arguments, {"case_sensitive", "attribute"});
  std::unordered_set<std::string> seen;
  std::vector<Value> out;
  for (const Value& item : iterate(input)) {
    interpreter.charge(1);
    std::string key;
    for (const Value& part : sort_keys(item, parameters.get(1), parameters.flag(0, false))) {
      append_key(key, part);
      key.push_back('\0');
    }
    if (seen.insert(std::move(key)).second) out.push_back(item);
  }
  return make_iterator(std::move(out));
}

Value sum(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("sum", arguments, {"attribute", "start"});
  const bool has_path = parameters.get(0) && !parameters.get(0)->is(Value::Kind::kNone);
  Value total = parameters.get(1) ? *parameters.get(1) : Value(int64_t{0});
  for (const Value& item : iterate(input)) {
    total =
        binary_operation("+", total, has_path ? attribute_path(item, *parameters.get(0)) : item);
  }
  return total;
}

Value map(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  std::vector<Value> out;
  if (arguments.positional.empty()) {
    Parameters parameters("map", arguments, {"attribute", "default"});
    for (const Value& item : iterate(input)) {
      Value value = attribute_path(item, parameters.required(0));
      if (value.is_undefined() && parameters.get(1)) value = *parameters.get(1);
      out.push_back(std::move(value));
    }
    return make_iterator(std::move(out));
  }
  if (!arguments.positional[0].is_text()) type_error("map() needs the name of a filter");
  const std::string name = arguments.positional[0].as_str();
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : iterate(input)) {
    interpreter.charge(1);
    out.push_back(interpreter.apply_filter(name, item, rest));
  }
  return make_iterator(std::move(out));
}

// select and its kin: an optional attribute first, then the name of a test and its arguments.
Value select_items(Interpreter& interpreter,
                   const Value& input,
                   const Arguments& arguments,
                   bool by_attribute,
                   bool wanted) {
  Arguments rest = arguments;
  auto take_first = [&]() {
    if (rest.positional.empty()) type_error("Missing parameter for attribute name");
    Value value = std::move(rest.positional.front());
    rest.positional.erase(rest.positional.begin());
    return value;
  };
  Value path;
  if (by_attribute) path = take_first();
  std::string test;
  if (!rest.positional.empty()) {
    const Value name = take_first();
    if (!name.is_text()) type_error("the name of a test must be a string");
    test = name.as_str();
  }
  std::vector<Value> out;
  for (const Value& item : iterate(input)) {
    interpreter.charge(1);
    const Value value = by_attribute ? attribute_path(item, path) : item;
    const bool holds = test.empty() ? value.truthy() : interpreter.apply_test(test, value, rest);
    if (holds == wanted) out.push_back(item);
  }
  return make_iterator(std::move(out));
}

Value select(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  return select_items(interpreter, input, arguments, false, true);
}
Value reject(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  return select_items(interpreter, input, arguments, false, false);
}
Value selectattr(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  return select_items(interpreter, input, arguments, true, true);
}
Value rejectattr(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  return select_items(interpreter, input, arguments, true, false);
}

struct Row {
  std::string_view name;
  Filter filter;
};

constexpr Row kFilters[] = {
    {"count", length_filter},   {"dictsort", dictsort}, {"first", first},
    {"items", items},           {"join", join},         {"last", last},
    {"length", length_filter},  {"list", list},         {"map", map},
    {"max", max_filter},        {"min", min_filter},    {"reject", reject},
    {"rejectattr", rejectattr}, {"reverse", reverse},   {"select", select},
    {"selectattr", selectattr}, {"sort", sort},         {"sum", sum},
    {"unique", unique},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  auto row = std::find_if(std::begin(kFilters), std::end(kFilters),
                          [&](const Row& candidate) { return candidate.name == name; });
  return row == std::end(kFilters) ? nullptr : row->filter;
}

}  // namespace winnow::text::jinja
