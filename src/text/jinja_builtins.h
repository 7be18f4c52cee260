// What a template can call: filters, tests, methods of values, and global functions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_interpreter.h"

namespace winnow::text::jinja {

using Filter = Value (*)(Interpreter&, const Value& input, Arguments&);
using Test = bool (*)(Interpreter&, const Value& input, Arguments&);
using Method = Value (*)(Interpreter&, const Value& self, Arguments&);

// nullptr where there is none of that name.
Filter find_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);  // a part of find_filter
Test find_test(std::string_view name);
Method find_method(const Value& self, std::string_view name);
Method find_text_method(std::string_view name);  // a part of find_method
Variables global_functions();

// object.name and object[key]: undefined where there is nothing of the kind.
Value get_attribute(const Value& object, std::string_view name);
Value get_item(const Value& object, const Value& key);
// begin, end and step may be None.
Value get_slice(const Value& object, const Value& begin, const Value& end, const Value& step);
// + - * / // % **
Value binary_operation(std::string_view op, const Value& left, const Value& right);
// "... %s ..." % value
MarkedText percent_format(const MarkedText& format, const Value& arguments);

// What methods and filters of strings share.
MarkedText replace_text(const MarkedText& text,
                        const MarkedText& old,
                        const MarkedText& with,
                        int64_t limit);  // limit < 0: all
MarkedText capitalized(const MarkedText& text);
// share: 0 pads on the right, 1 on both sides, 2 on the left. fill: one character.
MarkedText pad_text(const MarkedText& text, int64_t width, const std::string& fill, int share);
std::vector<Value> split_lines(const MarkedText& text, bool keep_ends);
bool has_case(const std::string& text, bool upper);  // str.isupper, str.islower

// Arguments sorted by parameter names. Throws kType for too many or unknown ones.
class Parameters {
 public:
  Parameters(std::string_view function,
             const Arguments& arguments,
             std::initializer_list<const char*> names);
  const Value* get(size_t i) const { return values_[i]; }  // nullptr: not given
  const Value& required(size_t i) const;
  const MarkedText& text(size_t i) const;  // required, a string
  int64_t integer(size_t i, int64_t otherwise) const;
  bool flag(size_t i, bool otherwise) const;

 private:
  std::string_view function_;
  std::vector<const char*> names_;
  std::vector<const Value*> values_;
};

}  // namespace winnow::text::jinja
