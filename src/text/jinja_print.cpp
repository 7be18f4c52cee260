// Values as text: Python's str() and repr(), and json.dumps().
#include <algorithm>
#include <cmath>

#include "text/jinja_value.h"

namespace winnow::text::jinja {

namespace {

void append_float(std::string& out, double value, bool json) {
  if (std::isnan(value)) {
    out += json ? "NaN" : "nan";
  } else if (std::isinf(value)) {
    out += json ? (value < 0 ? "-Infinity" : "Infinity") : (value < 0 ? "-inf" : "inf");
  } else {
    json::append_double(out, value);
  }
}

// Categories that repr() escapes; an approximation by ranges outside ASCII.
bool printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  if (c <= 0xA0 || c == 0xAD) return false;
  if (is_space(c)) return false;
  return !((c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2060 && c <= 0x206F) || (c >= 0xE000 && c <= 0xF8FF) || c == 0xFEFF ||
           (c >= 0xFFF0 && c <= 0xFFFB) || c >= 0xE0000);
}

void append_escape(std::string& out, char32_t c) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c < 0x100) {
    out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
}

void append_quoted(MarkedText& out, const MarkedText& marked, bool plain) {
  const std::string& text = marked.str();
  const bool double_quotes =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = double_quotes ? '"' : '\'';
  out.append(std::string_view(&quote, 1), plain);
  std::string encoded;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_bytes(text, at);
    const char32_t c = character_at(text, at);
    encoded.clear();
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      encoded.push_back('\\');
      encoded.push_back(static_cast<char>(c));
    } else if (printable(c)) {
      encoded.assign(text, at, bytes);
    } else {
      append_escape(encoded, c);
    }
    out.append(encoded, plain || marked.plain_at(at));
    at += bytes;
  }
  out.append(std::string_view(&quote, 1), plain);
}

void append_repr(MarkedText& out, const Value& value, bool plain);

void append_items(MarkedText& out, const List& list) {
  const bool tuple = list.kind == List::Kind::kTuple;
  out.append(tuple ? "(" : "[", list.plain);
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i) out.append(", ", list.plain);
    append_repr(out, list.items[i], list.plain);
  }
  if (tuple && list.items.size() == 1) out.append(",", list.plain);
  out.append(tuple ? ")" : "]", list.plain);
}

void append_repr(MarkedText& out, const Value& value, bool plain) {
  std::string text;
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      text = "Undefined";
      break;
    case Value::Kind::kNone:
      text = "None";
      break;
    case Value::Kind::kBool:
      text = value.as_bool() ? "True" : "False";
      break;
    case Value::Kind::kInt:
      text = std::to_string(value.as_int());
      break;
    case Value::Kind::kFloat:
      append_float(text, value.as_float(), false);
      break;
    case Value::Kind::kText:
      append_quoted(out, value.as_text(), plain);
      return;
    case Value::Kind::kList:
      append_items(out, value.as_list());
      return;
    case Value::Kind::kDict: {
      const Dict& dict = value.as_dict();
      out.append("{", dict.plain);
      for (size_t i = 0; i < dict.items.size(); ++i) {
        if (i) out.append(", ", dict.plain);
        append_repr(out, dict.items[i].first, dict.plain);
        out.append(": ", dict.plain);
        append_repr(out, dict.items[i].second, dict.plain);
      }
      out.append("}", dict.plain);
      return;
    }
    case Value::Kind::kNamespace:
      text = "<Namespace>";
      break;
    case Value::Kind::kCallable:
      text = fmt::format("<function {}>", value.as_callable()->name);
      break;
    case Value::Kind::kLoop:
      text = "<LoopContext>";
      break;
  }
  out.append(text, plain);
}

class JsonWriter {
 public:
  JsonWriter(MarkedText& out, const JsonStyle& style) : out_(out), style_(style) {}

  void write(const Value& value, bool plain, int level) {
    std::string text;
    switch (value.kind()) {
      case Value::Kind::kNone:
        text = "null";
        break;
      case Value::Kind::kBool:
        text = value.as_bool() ? "true" : "false";
        break;
      case Value::Kind::kInt:
        text = std::to_string(value.as_int());
        break;
      case Value::Kind::kFloat:
        append_float(text, value.as_float(), true);
        break;
      case Value::Kind::kText:
        write_string(value.as_text(), plain);
        return;
      case Value::Kind::kList:
        if (value.as_list().kind != List::Kind::kIterator) {
          write_list(value.as_list(), level);
          return;
        }
        [[fallthrough]];
      default:
        if (value.is(Value::Kind::kDict)) {
          write_dict(value.as_dict(), level);
          return;
        }
        type_error("Object of type {} is not JSON serializable", value.type_name());
    }
    out_.append(text, plain);
  }

 private:
  void write_string(const MarkedText& text, bool plain) {
    out_.append("\"", plain);
    size_t from = 0;
    for (const MarkedText::Run& run : text.plain_runs()) {
      write_characters(text, from, run.begin, plain);
      write_characters(text, run.begin, run.end, true);
      from = run.end;
    }
    write_characters(text, from, text.size(), plain);
    out_.append("\"", plain);
  }

  void write_characters(const MarkedText& text, size_t begin, size_t end, bool plain) {
    if (begin == end) return;
    std::string quoted;
    json::append_string(quoted, std::string_view(text.str()).substr(begin, end - begin));
    const auto encoded = std::string_view(quoted).substr(1, quoted.size() - 2);
    if (style_.ensure_ascii) {
      std::string ascii;
      encode_ascii(ascii, encoded);
      out_.append(ascii, plain);
    } else {
      out_.append(encoded, plain);
    }
  }

  static void encode_ascii(std::string& out, std::string_view escaped) {
    for (size_t at = 0; at < escaped.size(); at += character_bytes(escaped, at)) {
      char32_t c = character_at(escaped, at);
      if (c < 0x80) {
        out.push_back(static_cast<char>(c));
      } else if (c < 0x10000) {
        out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
      } else {
        c -= 0x10000;
        out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + static_cast<uint32_t>(c >> 10),
                           0xDC00 + static_cast<uint32_t>(c & 0x3FF));
      }
    }
  }

  void newline(bool plain, int level) {
    if (!style_.has_indent) return;
    std::string text = "\n";
    for (int i = 0; i < level; ++i) text += style_.indent;
    out_.append(text, plain);
  }

  void write_list(const List& list, int level) {
    out_.append("[", list.plain);
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i) out_.append(style_.item_separator, list.plain);
      newline(list.plain, level + 1);
      write(list.items[i], list.plain, level + 1);
    }
    if (!list.items.empty()) newline(list.plain, level);
    out_.append("]", list.plain);
  }

  void write_dict(const Dict& dict, int level) {
    std::vector<const std::pair<Value, Value>*> items;
    items.reserve(dict.items.size());
    for (const auto& item : dict.items) items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(), [](const auto* a, const auto* b) {
        return compare(a->first, b->first, "<") < 0;
      });
    }
    out_.append("{", dict.plain);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out_.append(style_.item_separator, dict.plain);
      newline(dict.plain, level + 1);
      write_key(items[i]->first, dict.plain);
      out_.append(style_.key_separator, dict.plain);
      write(items[i]->second, dict.plain, level + 1);
    }
    if (!items.empty()) newline(dict.plain, level);
    out_.append("}", dict.plain);
  }

  void write_key(const Value& key, bool plain) {
    if (key.is_text()) {
      write_string(key.as_text(), plain);
      return;
    }
    if (!key.is_number() && !key.is(Value::Kind::kNone)) {
      type_error("keys must be str, int, float, bool or None, not {}", key.type_name());
    }
    out_.append("\"", plain);
    write(key, plain, 0);
    out_.append("\"", plain);
  }

  MarkedText& out_;
  const JsonStyle& style_;
};

}  // namespace

void append_text(MarkedText& out, const Value& value) {
  if (value.is_text()) {
    out.append(value.as_text());
  } else if (!value.is_undefined()) {
    append_repr(out, value, false);
  }
}

MarkedText to_text(const Value& value) {
  MarkedText out;
  append_text(out, value);
  return out;
}

std::string repr(const Value& value) {
  MarkedText out;
  append_repr(out, value, false);
  return out.str();
}

MarkedText to_json(const Value& value, const JsonStyle& style) {
  MarkedText out;
  value.require_defined();
  JsonWriter(out, style).write(value, false, 0);
  return out;
}

}  // namespace winnow::text::jinja
