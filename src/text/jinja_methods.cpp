// Methods of dicts, lists and loops, global functions, and the sorting of arguments. The methods
// of strings are in jinja_text_methods.cpp.
#include <algorithm>

#include "text/jinja_builtins.h"

namespace winnow::text::jinja {

Parameters::Parameters(std::string_view function,
                       const Arguments& arguments,
                       std::initializer_list<const char*> names)
    : function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size()) {
    type_error("{}() takes at most {} argument(s), {} given", function, names_.size(),
               arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    auto at = std::find_if(names_.begin(), names_.end(),
                           [&, &key = name](const char* known) { return key == known; });
    if (at == names_.end()) {
      type_error("{}() got an unexpected keyword argument '{}'", function, name);
    }
    const Value*& slot = values_[static_cast<size_t>(at - names_.begin())];
    if (slot) type_error("{}() got multiple values for argument '{}'", function, name);
    slot = &value;
  }
}

const Value& Parameters::required(size_t i) const {
  if (!values_[i]) type_error("{}() misses its argument '{}'", function_, names_[i]);
  return *values_[i];
}

const MarkedText& Parameters::text(size_t i) const {
  const Value& value = required(i);
  if (!value.is_text()) {
    value.require_defined();
    type_error("{}() argument '{}' must be str, not {}", function_, names_[i], value.type_name());
  }
  return value.as_text();
}

int64_t Parameters::integer(size_t i, int64_t otherwise) const {
  if (!values_[i]) return otherwise;
  if (!values_[i]->is_integral()) {
    values_[i]->require_defined();
    type_error("{}() argument '{}' must be int, not {}", function_, names_[i],
               values_[i]->type_name());
  }
  return values_[i]->as_int();
}

bool Parameters::flag(size_t i, bool otherwise) const {
  return values_[i] ? values_[i]->truthy() : otherwise;
}

namespace {

Value dict_get(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("get", arguments, {"key", "default"});
  const Value& key = parameters.required(0);
  if (!key.is_undefined()) {
    if (const Value* value = self.as_dict().find(key)) return *value;
  }
  return parameters.get(1) ? *parameters.get(1) : Value(None{});
}

Value dict_items(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("items", arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.as_dict().items) {
    items.push_back(make_list({key, value}, List::Kind::kTuple));
  }
  return make_list(std::move(items));
}

Value dict_keys(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("keys", arguments, {});
  return make_list(iterate(self));
}

Value dict_values(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("values", arguments, {});
  std::vector<Value> items;
  for (const auto& item : self.as_dict().items) items.push_back(item.second);
  return make_list(std::move(items));
}

Value copy(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("copy", arguments, {});
  return self;
}

Value list_index(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("index", arguments, {"value"});
  const auto& items = self.as_list().items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(items[i], parameters.required(0))) return Value(static_cast<int64_t>(i));
  }
  type_error("{} is not in list", repr(parameters.required(0)));
}

Value list_count(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("count", arguments, {"value"});
  int64_t count = 0;
  for (const Value& item : self.as_list().items) count += equal(item, parameters.required(0));
  return Value(count);
}

Value loop_cycle(Interpreter&, const Value& self, Arguments& arguments) {
  if (arguments.positional.empty()) type_error("no items for cycling given");
  return arguments.positional[self.as_loop()->index0 % arguments.positional.size()];
}

Value loop_changed(Interpreter&, const Value& self, Arguments& arguments) {
  Loop& loop = *self.as_loop();
  auto& last = loop.last_changed;
  const bool same = loop.changed_before && last.size() == arguments.positional.size() &&
                    std::equal(last.begin(), last.end(), arguments.positional.begin(), equal);
  if (same) return Value(false);
  loop.changed_before = true;
  last = arguments.positional;
  return Value(true);
}

struct Row {
  std::string_view name;
  Method method;
};

template <size_t size>
Method find_row(const Row (&rows)[size], std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.method;
  }
  return nullptr;
}

constexpr Row kDictMethods[] = {{"get", dict_get},
                                {"items", dict_items},
                                {"keys", dict_keys},
                                {"values", dict_values},
                                {"copy", copy}};
constexpr Row kListMethods[] = {{"index", list_index}, {"count", list_count}, {"copy", copy}};
constexpr Row kLoopMethods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

Value make_range(Interpreter& interpreter, Arguments& arguments) {
  Parameters parameters("range", arguments, {"start", "stop", "step"});
  parameters.required(0);
  const bool one = parameters.get(1) == nullptr;
  const int64_t start = one ? 0 : parameters.integer(0, 0);
  const int64_t stop = parameters.integer(one ? 0 : 1, 0);
  const int64_t step = parameters.integer(2, 1);
  constexpr int64_t kBound = int64_t{1} << 40;
  constexpr size_t kMaxRange = 100'000;  // the sandbox's
  if (step == 0) type_error("range() arg 3 must not be zero");
  for (const int64_t argument : {start, stop, step}) {
    if (argument < -kBound || argument > kBound) type_error("range() arguments are too large");
  }
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (items.size() >= kMaxRange) type_error("Range too big, the most is {}", kMaxRange);
    items.push_back(Value(i));
  }
  interpreter.charge(items.size() / 8);
  return make_list(std::move(items));
}

std::vector<std::pair<Value, Value>> pairs_of(const Value& value) {
  std::vector<std::pair<Value, Value>> pairs;
  if (value.is(Value::Kind::kDict)) return value.as_dict().items;
  for (const Value& item : iterate(value)) {
    const std::vector<Value> pair = iterate(item);
    if (pair.size() != 2) type_error("a dict is made of pairs");
    pairs.emplace_back(pair[0], pair[1]);
  }
  return pairs;
}

Value make_dict_function(Interpreter&, Arguments& arguments) {
  std::vector<std::pair<Value, Value>> items;
  if (arguments.positional.size() > 1) type_error("dict expected at most 1 argument");
  if (!arguments.positional.empty()) items = pairs_of(arguments.positional[0]);
  for (const auto& [name, value] : arguments.named) items.emplace_back(Value::text(name), value);
  return make_dict(std::move(items));
}

Value make_namespace(Interpreter& interpreter, Arguments& arguments) {
  Namespace* space = interpreter.new_namespace();
  if (arguments.positional.size() > 1) type_error("namespace expected at most 1 argument");
  if (!arguments.positional.empty()) {
    for (const auto& [key, value] : pairs_of(arguments.positional[0])) {
      if (key.is_text()) space->set(key.as_str(), value);
    }
  }
  for (auto& [name, value] : arguments.named) space->set(name, value);
  return space;
}

Value raise_exception(Interpreter&, Arguments& arguments) {
  Parameters parameters("raise_exception", arguments, {"message"});
  fail(TemplateError::Kind::kRaised, to_text(parameters.required(0)).str());
}

Value strftime_now(Interpreter& interpreter, Arguments& arguments) {
  Parameters parameters("strftime_now", arguments, {"format"});
  const std::string& format = parameters.text(0).str();
  const std::time_t now = interpreter.now();
  std::tm local{};
  localtime_r(&now, &local);
  if (format.empty()) return Value::text("");
  if (format.size() > 256) type_error("the format of strftime_now is too long");
  std::string out(64 + format.size() * 64, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &local));
  return Value::text(out);
}

}  // namespace

Method find_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Value::Kind::kText:
      return find_text_method(name);
    case Value::Kind::kDict:
      return find_row(kDictMethods, name);
    case Value::Kind::kList:
      return find_row(kListMethods, name);
    case Value::Kind::kLoop:
      return find_row(kLoopMethods, name);
    default:
      return nullptr;
  }
}

Variables global_functions() {
  static const Variables kGlobals = [] {
    Variables globals;
    auto add = [&](const char* name, Value (*function)(Interpreter&, Arguments&)) {
      auto callable = std::make_shared<Callable>();
      callable->name = name;
      callable->call = function;
      globals.emplace_back(name, CallablePtr(std::move(callable)));
    };
    add("range", make_range);
    add("dict", make_dict_function);
    add("namespace", make_namespace);
    add("raise_exception", raise_exception);
    add("strftime_now", strftime_now);
    return globals;
  }();
  return kGlobals;
}

}  // namespace winnow::text::jinja
