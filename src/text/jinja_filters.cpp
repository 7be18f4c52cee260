// Filters of single values, and the string functions that filters and methods share.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "text/jinja_builtins.h"

namespace winnow::text::jinja {

MarkedText replace_text(const MarkedText& text,
                        const MarkedText& old,
                        const MarkedText& with,
                        int64_t limit) {
  MarkedText out;
  const std::string& bytes = text.str();
  size_t copied = 0;
  for (size_t at = 0; limit != 0; --limit) {
    if (old.empty()) {  // between all characters, and at both ends
      out.append(text, copied, at);
      copied = at;
      out.append(with);
      if (at >= bytes.size()) break;
      at += character_bytes(bytes, at);
    } else {
      at = bytes.find(old.str(), at);
      if (at == std::string::npos) break;
      out.append(text, copied, at);
      out.append(with);
      at += old.size();
      copied = at;
    }
  }
  out.append(text, copied, bytes.size());
  return out;
}

MarkedText capitalized(const MarkedText& text) {
  bool first = true;
  return map_characters(text, [&](char32_t c, char32_t) {
    return std::exchange(first, false) ? to_upper(c) : to_lower(c);
  });
}

MarkedText pad_text(const MarkedText& text, int64_t width, const std::string& fill, int share) {
  const auto size = static_cast<int64_t>(count_characters(text.str()));
  if (width <= size) return text;
  if (count_characters(fill) != 1) {
    type_error("The fill character must be exactly one character long");
  }
  const int64_t missing = width - size;
  check_text_size(fill.size(), static_cast<size_t>(missing));
  int64_t left = share == 0 ? 0 : share == 2 ? missing : missing / 2;
  if (share == 1 && missing % 2 && width % 2) ++left;  // as CPython rounds
  MarkedText out;
  for (int64_t i = 0; i < left; ++i) out.append(fill, false);
  out.append(text);
  for (int64_t i = left; i < missing; ++i) out.append(fill, false);
  return out;
}

std::vector<Value> split_lines(const MarkedText& text, bool keep_ends) {
  std::vector<Value> lines;
  const std::string& bytes = text.str();
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = character_at(bytes, at);
    size_t next = at + character_bytes(bytes, at);
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (ends) {
      if (c == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.emplace_back(text.substr(begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.emplace_back(text.substr(begin, bytes.size()));
  return lines;
}

bool has_case(const std::string& text, bool upper) {
  bool cased = false;
  for (size_t at = 0; at < text.size(); at += character_bytes(text, at)) {
    const char32_t c = character_at(text, at);
    if ((upper ? to_lower(c) : to_upper(c)) != c) cased = true;
    if ((upper ? to_upper(c) : to_lower(c)) != c) return false;
  }
  return cased;
}

namespace {

Value default_filter(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("default", arguments, {"default_value", "boolean"});
  if (input.is_undefined() || (parameters.flag(1, false) && !input.truthy())) {
    return parameters.get(0) ? *parameters.get(0) : Value::text("");
  }
  return input;
}

Value upper(Interpreter&, const Value& input, Arguments&) {
  return map_characters(to_text(input), [](char32_t c, char32_t) { return to_upper(c); });
}
Value lower(Interpreter&, const Value& input, Arguments&) {
  return map_characters(to_text(input), [](char32_t c, char32_t) { return to_lower(c); });
}
Value capitalize(Interpreter&, const Value& input, Arguments&) {
  return capitalized(to_text(input));
}
// Not str.title: a word begins after blanks, hyphens and opening brackets only.
Value title(Interpreter&, const Value& input, Arguments&) {
  return map_characters(to_text(input), [](char32_t c, char32_t previous) {
    const bool begins = previous == 0 || is_space(previous) || previous == '-' || previous == '(' ||
                        previous == '{' || previous == '[' || previous == '<';
    return begins ? to_upper(c) : to_lower(c);
  });
}

Value trim(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("trim", arguments, {"chars"});
  const bool has_set = parameters.get(0) && !parameters.get(0)->is(Value::Kind::kNone);
  const MarkedText text = to_text(input);
  const MarkedText::Run range =
      stripped_range(text.str(), true, true, has_set ? &parameters.text(0).str() : nullptr);
  return text.substr(range.begin, range.end);
}

Value replace(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("replace", arguments, {"old", "new", "count"});
  const bool limited = parameters.get(2) && !parameters.get(2)->is(Value::Kind::kNone);
  return replace_text(to_text(input), to_text(parameters.required(0)),
                      to_text(parameters.required(1)), limited ? parameters.integer(2, -1) : -1);
}

Value string(Interpreter&, const Value& input, Arguments&) { return to_text(input); }
Value same(Interpreter&, const Value& input, Arguments&) { return input; }

Value escape(Interpreter&, const Value& input, Arguments&) {
  MarkedText out;
  const MarkedText text = to_text(input);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text.str()[i];
    const char* escaped = c == '&'    ? "&amp;"
                          : c == '<'  ? "&lt;"
                          : c == '>'  ? "&gt;"
                          : c == '\'' ? "&#39;"
                          : c == '"'  ? "&#34;"
                                      : nullptr;
    out.append(escaped ? std::string_view(escaped) : std::string_view(&c, 1), text.plain_at(i));
  }
  return out;
}

Value indent(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("indent", arguments, {"width", "first", "blank"});
  std::string width(4, ' ');
  if (parameters.get(0)) {
    if (parameters.get(0)->is_text()) {
      width = parameters.text(0).str();
    } else {
      width.assign(static_cast<size_t>(std::clamp<int64_t>(parameters.integer(0, 4), 0, 10'000)),
                   ' ');
    }
  }
  MarkedText text = to_text(input);
  text.append("\n", false);
  MarkedText out;
  bool first = true;
  for (const Value& line : split_lines(text, false)) {
    if (!first) out.append("\n", false);
    const bool pads =
        first ? parameters.flag(1, false) : !line.as_text().empty() || parameters.flag(2, false);
    if (pads) out.append(width, false);
    out.append(line.as_text());
    first = false;
  }
  return out;
}

Value center(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("center", arguments, {"width"});
  return pad_text(to_text(input), parameters.integer(0, 80), " ", 1);
}

Value truncate(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("truncate", arguments, {"length", "killwords", "end", "leeway"});
  Value text(to_text(input));
  const Value end = parameters.get(2) ? Value(to_text(*parameters.get(2))) : Value::text("...");
  const int64_t limit = parameters.integer(0, 255);
  const int64_t leeway = parameters.integer(3, 5);
  if (length(text) <= limit || length(text) - limit <= leeway) return text;
  const Value kept =
      get_slice(text, None{}, Value(std::max<int64_t>(limit - length(end), 0)), None{});
  MarkedText out = kept.as_text();
  const size_t space = out.str().rfind(' ');
  if (!parameters.flag(1, false) && space != std::string::npos) out = out.substr(0, space);
  out.append(end.as_text());
  return out;
}

Value absolute(Interpreter&, const Value& input, Arguments&) {
  if (!input.is_number()) {
    input.require_defined();
    type_error("bad operand type for abs(): '{}'", input.type_name());
  }
  if (input.is(Value::Kind::kFloat)) return Value(std::fabs(input.as_float()));
  return input.as_int() < 0 ? binary_operation("neg", Value(int64_t{0}), input)
                            : Value(input.as_int());
}

std::string number_text(const Value& input) {
  const MarkedText::Run range = stripped_range(input.as_str(), true, true);
  std::string text = input.as_str().substr(range.begin, range.end - range.begin);
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  return text;
}

bool parse_float(const Value& input, double& out) {
  const std::string text = number_text(input);
  if (text.empty() || text.find_first_of("xXpP") != std::string::npos) return false;
  char* end = nullptr;
  out = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size();
}

Value float_to_int(double value, const Value& otherwise) {
  if (!(std::fabs(value) < 9.2e18)) return otherwise;  // NaN as well
  return Value(static_cast<int64_t>(value));
}

Value to_int(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("int", arguments, {"default", "base"});
  Value otherwise = parameters.get(0) ? *parameters.get(0) : Value(int64_t{0});
  input.require_defined();
  if (input.is_integral()) return Value(input.as_int());
  if (input.is(Value::Kind::kFloat)) return float_to_int(input.as_float(), otherwise);
  if (!input.is_text()) return otherwise;
  std::string text = number_text(input);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.erase(0, 1);
  const auto base = static_cast<int>(std::clamp<int64_t>(parameters.integer(1, 10), 2, 36));
  if (base == 16 && text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') text.erase(0, 2);
  int64_t value = 0;
  auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (ec == std::errc() && ptr == text.data() + text.size()) return Value(value);
  double number = 0;
  return parse_float(input, number) ? float_to_int(number, otherwise) : otherwise;
}

Value to_float(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("float", arguments, {"default"});
  input.require_defined();
  if (input.is_number()) return Value(input.as_float());
  double value = 0;
  if (input.is_text() && parse_float(input, value)) return Value(value);
  return parameters.get(0) ? *parameters.get(0) : Value(0.0);
}

Value round_filter(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("round", arguments, {"precision", "method"});
  if (!input.is_number()) {
    input.require_defined();
    type_error("round() needs a number, not {}", input.type_name());
  }
  const auto precision = static_cast<int>(std::clamp<int64_t>(parameters.integer(0, 0), -300, 300));
  const std::string method = parameters.get(1) ? parameters.text(1).str() : "common";
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, precision);
    const double scaled = input.as_float() * scale;
    return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (method != "common") type_error("method must be common, ceil or floor");
  if (input.is_integral() && precision >= 0) return Value(input.as_int());
  if (precision < 0) {
    const double scale = std::pow(10.0, -precision);
    const double rounded = std::nearbyint(input.as_float() / scale) * scale;
    return input.is_integral() ? Value(static_cast<int64_t>(rounded)) : Value(rounded);
  }
  return Value(std::strtod(fmt::format("{:.{}f}", input.as_float(), precision).c_str(), nullptr));
}

void read_separators(const Value& value, JsonStyle& style) {
  const std::vector<Value> parts = iterate(value);
  if (parts.size() != 2 || !parts[0].is_text() || !parts[1].is_text()) {
    type_error("tojson() separators must be two strings");
  }
  style.item_separator = parts[0].as_str();
  style.key_separator = parts[1].as_str();
}

// As chat templates know it: json.dumps without HTML escapes.
Value tojson(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  Parameters parameters("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = parameters.flag(0, false);
  style.sort_keys = parameters.flag(3, false);
  const Value* indent_value = parameters.get(1);
  if (indent_value && !indent_value->is(Value::Kind::kNone)) {
    style.has_indent = true;
    style.item_separator = std::string(1, ',');
    if (indent_value->is_text()) {
      style.indent = indent_value->as_str();
    } else {
      style.indent.assign(static_cast<size_t>(std::clamp<int64_t>(parameters.integer(1, 0), 0, 64)),
                          ' ');
    }
  }
  const Value* separators = parameters.get(2);
  if (separators && !separators->is(Value::Kind::kNone)) read_separators(*separators, style);
  MarkedText out = to_json(input, style);
  interpreter.charge(out.size() / 64);
  return out;
}

Value format(Interpreter&, const Value& input, Arguments& arguments) {
  const Value values = make_list(arguments.positional, List::Kind::kTuple);
  return percent_format(to_text(input), values);
}

Value attr(Interpreter&, const Value& input, Arguments& arguments) {
  Parameters parameters("attr", arguments, {"name"});
  const std::string& name = parameters.text(0).str();
  if (input.is(Value::Kind::kDict) && !find_method(input, name)) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return get_attribute(input, name);
}

Value wordcount(Interpreter&, const Value& input, Arguments&) {
  const MarkedText text = to_text(input);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size(); at += character_bytes(text.str(), at)) {
    const char32_t c = character_at(text.str(), at);
    const bool word = is_alpha(c) || (c >= '0' && c <= '9') || c == '_';
    words += word && !inside;
    inside = word;
  }
  return Value(words);
}

struct Row {
  std::string_view name;
  Filter filter;
};

constexpr Row kFilters[] = {
    {"abs", absolute},  {"attr", attr},           {"capitalize", capitalize},
    {"center", center}, {"d", default_filter},    {"default", default_filter},
    {"e", escape},      {"escape", escape},       {"float", to_float},
    {"format", format}, {"indent", indent},       {"int", to_int},
    {"lower", lower},   {"replace", replace},     {"round", round_filter},
    {"safe", same},     {"string", string},       {"title", title},
    {"tojson", tojson}, {"trim", trim},           {"truncate", truncate},
    {"upper", upper},   {"wordcount", wordcount},
};

}  // namespace

Filter find_filter(std::string_view name) {
  for (const Row& row : kFilters) {
    if (row.name == name) return row.filter;
  }
  return find_sequence_filter(name);
}

}  // namespace winnow::text::jinja
