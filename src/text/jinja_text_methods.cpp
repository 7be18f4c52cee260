// Methods of strings. Indices and widths count characters.
#include <algorithm>
#include <limits>

#include "text/jinja_builtins.h"

namespace winnow::text::jinja {

namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

Value strip_with(
    std::string_view name, const Value& self, const Arguments& arguments, bool left, bool right) {
  Parameters parameters(name, arguments, {"chars"});
  const Value* chars = parameters.get(0);
  const bool has_set = chars && !chars->is(Value::Kind::kNone);
  const std::string* set = has_set ? &parameters.text(0).str() : nullptr;
  const MarkedText& text = self.as_text();
  const MarkedText::Run range = stripped_range(text.str(), left, right, set);
  return text.substr(range.begin, range.end);
}

Value strip(Interpreter&, const Value& self, Arguments& arguments) {
  return strip_with("strip", self, arguments, true, true);
}
Value lstrip(Interpreter&, const Value& self, Arguments& arguments) {
  return strip_with("lstrip", self, arguments, true, false);
}
Value rstrip(Interpreter&, const Value& self, Arguments& arguments) {
  return strip_with("rstrip", self, arguments, false, true);
}

std::vector<Value> split_on(const MarkedText& text, const std::string& separator, int64_t limit) {
  std::vector<Value> parts;
  size_t at = 0;
  for (size_t found; limit > 0 && (found = text.str().find(separator, at)) != std::string::npos;
       --limit) {
    parts.emplace_back(text.substr(at, found));
    at = found + separator.size();
  }
  parts.emplace_back(text.substr(at, text.size()));
  return parts;
}

std::vector<Value> split_on_from_right(const MarkedText& text,
                                       const std::string& separator,
                                       int64_t limit) {
  std::vector<Value> parts;
  size_t end = text.size();
  while (limit > 0 && end >= separator.size()) {
    const size_t found = text.str().rfind(separator, end - separator.size());
    if (found == std::string::npos) break;
    parts.emplace_back(text.substr(found + separator.size(), end));
    end = found;
    --limit;
  }
  parts.emplace_back(text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

size_t skip_spaces(const std::string& text, size_t at, bool spaces) {
  while (at < text.size() && is_space(character_at(text, at)) == spaces) {
    at += character_bytes(text, at);
  }
  return at;
}

std::vector<Value> split_on_spaces(const MarkedText& text, int64_t limit) {
  std::vector<Value> parts;
  const std::string& bytes = text.str();
  for (size_t at = skip_spaces(bytes, 0, true); at < bytes.size();) {
    if (limit-- <= 0) {
      parts.emplace_back(text.substr(at, bytes.size()));
      break;
    }
    const size_t end = skip_spaces(bytes, at, false);
    parts.emplace_back(text.substr(at, end));
    at = skip_spaces(bytes, end, true);
  }
  return parts;
}

std::vector<Value> split_on_spaces_from_right(const MarkedText& text, int64_t limit) {
  std::vector<Value> words;
  const std::string& bytes = text.str();
  std::vector<MarkedText::Run> runs;
  for (size_t at = skip_spaces(bytes, 0, true); at < bytes.size();) {
    const size_t end = skip_spaces(bytes, at, false);
    runs.push_back({at, end});
    at = skip_spaces(bytes, end, true);
  }
  const auto kept =
      static_cast<size_t>(std::min<int64_t>(limit, static_cast<int64_t>(runs.size())));
  const size_t joined = runs.size() - kept;
  if (joined > 0) words.emplace_back(text.substr(0, runs[joined - 1].end));
  for (size_t i = joined; i < runs.size(); ++i) {
    words.emplace_back(text.substr(runs[i].begin, runs[i].end));
  }
  return words;
}

Value split_with(std::string_view name,
                 const Value& self,
                 const Arguments& arguments,
                 bool from_right) {
  Parameters parameters(name, arguments, {"sep", "maxsplit"});
  int64_t limit = parameters.integer(1, -1);
  if (limit < 0) limit = kUnlimited;
  const Value* separator = parameters.get(0);
  const MarkedText& text = self.as_text();
  if (!separator || separator->is(Value::Kind::kNone)) {
    return make_list(from_right ? split_on_spaces_from_right(text, limit)
                                : split_on_spaces(text, limit));
  }
  const std::string& bytes = parameters.text(0).str();
  if (bytes.empty()) type_error("empty separator");
  return make_list(from_right ? split_on_from_right(text, bytes, limit)
                              : split_on(text, bytes, limit));
}

Value split(Interpreter&, const Value& self, Arguments& arguments) {
  return split_with("split", self, arguments, false);
}
Value rsplit(Interpreter&, const Value& self, Arguments& arguments) {
  return split_with("rsplit", self, arguments, true);
}

Value splitlines(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("splitlines", arguments, {"keepends"});
  return make_list(split_lines(self.as_text(), parameters.flag(0, false)));
}

bool affix_matches(std::string_view name,
                   const Value& self,
                   const Arguments& arguments,
                   bool prefix) {
  Parameters parameters(name, arguments, {"prefix"});
  const std::string& text = self.as_str();
  auto matches = [&](const Value& affix) {
    if (!affix.is_text()) {
      affix.require_defined();
      type_error("{} first arg must be str or a tuple of str, not {}", name, affix.type_name());
    }
    const std::string& bytes = affix.as_str();
    if (bytes.size() > text.size()) return false;
    return text.compare(prefix ? 0 : text.size() - bytes.size(), bytes.size(), bytes) == 0;
  };
  const Value& affix = parameters.required(0);
  if (affix.is(Value::Kind::kList) && affix.as_list().kind == List::Kind::kTuple) {
    const auto& choices = affix.as_list().items;
    return std::any_of(choices.begin(), choices.end(), matches);
  }
  return matches(affix);
}

Value startswith(Interpreter&, const Value& self, Arguments& arguments) {
  return Value(affix_matches("startswith", self, arguments, true));
}
Value endswith(Interpreter&, const Value& self, Arguments& arguments) {
  return Value(affix_matches("endswith", self, arguments, false));
}

Value removeprefix(Interpreter&, const Value& self, Arguments& arguments) {
  if (!affix_matches("removeprefix", self, arguments, true)) return self;
  return self.as_text().substr(arguments.positional.at(0).as_text().size(), self.as_text().size());
}
Value removesuffix(Interpreter&, const Value& self, Arguments& arguments) {
  if (!affix_matches("removesuffix", self, arguments, false)) return self;
  return self.as_text().substr(0,
                               self.as_text().size() - arguments.positional.at(0).as_text().size());
}

Value replace(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("replace", arguments, {"old", "new", "count"});
  const int64_t limit = parameters.integer(2, -1);
  return replace_text(self.as_text(), parameters.text(0), parameters.text(1), limit);
}

Value upper(Interpreter&, const Value& self, Arguments&) {
  return map_characters(self.as_text(), [](char32_t c, char32_t) { return to_upper(c); });
}
Value lower(Interpreter&, const Value& self, Arguments&) {
  return map_characters(self.as_text(), [](char32_t c, char32_t) { return to_lower(c); });
}
Value capitalize(Interpreter&, const Value& self, Arguments&) {
  return capitalized(self.as_text());
}
Value title(Interpreter&, const Value& self, Arguments&) {
  return map_characters(self.as_text(), [](char32_t c, char32_t previous) {
    return is_alpha(previous) ? to_lower(c) : to_upper(c);
  });
}
Value swapcase(Interpreter&, const Value& self, Arguments&) {
  return map_characters(self.as_text(), [](char32_t c, char32_t) {
    return to_lower(c) != c ? to_lower(c) : to_upper(c);
  });
}

int64_t found_at(const std::string& text, size_t byte) {
  if (byte == std::string::npos) return -1;
  return static_cast<int64_t>(count_characters(std::string_view(text).substr(0, byte)));
}

Value find(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("find", arguments, {"sub"});
  return Value(found_at(self.as_str(), self.as_str().find(parameters.text(0).str())));
}
Value rfind(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("rfind", arguments, {"sub"});
  return Value(found_at(self.as_str(), self.as_str().rfind(parameters.text(0).str())));
}
Value index(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  Value at = find(interpreter, self, arguments);
  if (at.as_int() < 0) type_error("substring not found");
  return at;
}

Value count(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("count", arguments, {"sub"});
  const std::string& sub = parameters.text(0).str();
  const std::string& text = self.as_str();
  if (sub.empty()) return Value(static_cast<int64_t>(count_characters(text)) + 1);
  int64_t found = 0;
  for (size_t at = 0; (at = text.find(sub, at)) != std::string::npos; at += sub.size()) ++found;
  return Value(found);
}

Value join(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  Parameters parameters("join", arguments, {"iterable"});
  MarkedText out;
  bool first = true;
  for (const Value& item : iterate(parameters.required(0))) {
    if (!item.is_text()) {
      item.require_defined();
      type_error("sequence item: expected str instance, {} found", item.type_name());
    }
    if (!first) out.append(self.as_text());
    first = false;
    out.append(item.as_text());
  }
  interpreter.charge(out.size() / 64);
  return out;
}

// "{}", "{0}" and "{name}"; no attributes, conversions or format specifications.
Value format(Interpreter&, const Value& self, Arguments& arguments) {
  const MarkedText& text = self.as_text();
  const std::string& bytes = text.str();
  MarkedText out;
  size_t next = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t brace = bytes.find_first_of("{}", at);
    out.append(text, at, std::min(brace, bytes.size()));
    if (brace == std::string::npos) break;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      out.append(text, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string::npos) type_error("bad format string");
    const std::string field = bytes.substr(brace + 1, close - brace - 1);
    at = close + 1;
    auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                              [&](const auto& item) { return item.first == field; });
    if (named != arguments.named.end()) {
      append_text(out, named->second);
      continue;
    }
    const bool numeric =
        field.size() < 4 && field.find_first_not_of("0123456789") == std::string::npos;
    if (!numeric) type_error("format field '{}' is not supported", field);
    const size_t place = field.empty() ? next++ : std::stoul(field);
    if (place >= arguments.positional.size()) {
      type_error("Replacement index {} out of range for positional args tuple", place);
    }
    append_text(out, arguments.positional[place]);
  }
  return out;
}

template <typename Holds>
Value all_characters(const Value& self, Holds holds) {
  const std::string& text = self.as_str();
  for (size_t at = 0; at < text.size(); at += character_bytes(text, at)) {
    if (!holds(character_at(text, at))) return Value(false);
  }
  return Value(!text.empty());
}

bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }

Value isdigit(Interpreter&, const Value& self, Arguments&) {
  return all_characters(self, is_ascii_digit);
}
Value isalpha(Interpreter&, const Value& self, Arguments&) {
  return all_characters(self, is_alpha);
}
Value isalnum(Interpreter&, const Value& self, Arguments&) {
  return all_characters(self, [](char32_t c) { return is_alpha(c) || is_ascii_digit(c); });
}
Value isspace(Interpreter&, const Value& self, Arguments&) {
  return all_characters(self, is_space);
}
Value isupper(Interpreter&, const Value& self, Arguments&) {
  return Value(has_case(self.as_str(), true));
}
Value islower(Interpreter&, const Value& self, Arguments&) {
  return Value(has_case(self.as_str(), false));
}

// share: how many of the missing characters go to the left.
Value padded(std::string_view name, const Value& self, const Arguments& arguments, int share) {
  Parameters parameters(name, arguments, {"width", "fillchar"});
  const std::string fill = parameters.get(1) ? parameters.text(1).str() : " ";
  return pad_text(self.as_text(), parameters.integer(0, 0), fill, share);
}

Value ljust(Interpreter&, const Value& self, Arguments& arguments) {
  return padded("ljust", self, arguments, 0);
}
Value rjust(Interpreter&, const Value& self, Arguments& arguments) {
  return padded("rjust", self, arguments, 2);
}
Value center(Interpreter&, const Value& self, Arguments& arguments) {
  return padded("center", self, arguments, 1);
}

Value zfill(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("zfill", arguments, {"width"});
  const MarkedText& text = self.as_text();
  const bool sign = !text.empty() && (text.str()[0] == '-' || text.str()[0] == '+');
  MarkedText out = text.substr(0, sign);
  out.append(pad_text(text.substr(sign, text.size()), parameters.integer(0, 0) - sign, "0", 2));
  return out;
}

Value parts_around(const MarkedText& text, size_t found, size_t separator_bytes, bool whole_first) {
  std::vector<Value> parts;
  if (found != std::string::npos) {
    parts = {text.substr(0, found), text.substr(found, found + separator_bytes),
             text.substr(found + separator_bytes, text.size())};
  } else if (whole_first) {
    parts = {text, MarkedText(), MarkedText()};
  } else {
    parts = {MarkedText(), MarkedText(), text};
  }
  return make_list(std::move(parts), List::Kind::kTuple);
}

Value partition(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("partition", arguments, {"sep"});
  const std::string& separator = parameters.text(0).str();
  if (separator.empty()) type_error("empty separator");
  return parts_around(self.as_text(), self.as_str().find(separator), separator.size(), true);
}
Value rpartition(Interpreter&, const Value& self, Arguments& arguments) {
  Parameters parameters("rpartition", arguments, {"sep"});
  const std::string& separator = parameters.text(0).str();
  if (separator.empty()) type_error("empty separator");
  return parts_around(self.as_text(), self.as_str().rfind(separator), separator.size(), false);
}

struct Row {
  std::string_view name;
  Method method;
};

constexpr Row kMethods[] = {
    {"capitalize", capitalize},
    {"center", center},
    {"count", count},
    {"endswith", endswith},
    {"find", find},
    {"format", format},
    {"index", index},
    {"isalnum", isalnum},
    {"isalpha", isalpha},
    {"isdecimal", isdigit},
    {"isdigit", isdigit},
    {"islower", islower},
    {"isnumeric", isdigit},
    {"isspace", isspace},
    {"isupper", isupper},
    {"join", join},
    {"ljust", ljust},
    {"lower", lower},
    {"lstrip", lstrip},
    {"partition", partition},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"rfind", rfind},
    {"rjust", rjust},
    {"rpartition", rpartition},
    {"rsplit", rsplit},
    {"rstrip", rstrip},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"strip", strip},
    {"swapcase", swapcase},
    {"title", title},
    {"upper", upper},
    {"zfill", zfill},
};

}  // namespace

Method find_text_method(std::string_view name) {
  auto row = std::find_if(std::begin(kMethods), std::end(kMethods),
                          [&](const Row& candidate) { return candidate.name == name; });
  return row == std::end(kMethods) ? nullptr : row->method;
}

}  // namespace winnow::text::jinja
