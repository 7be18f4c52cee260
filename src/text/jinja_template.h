// Chat templates: Jinja2 as Hugging Face's tokenizers run it (immutable sandbox, trim_blocks,
// lstrip_blocks, loop controls, {% generation %}; tojson is json.dumps with ensure_ascii false;
// raise_exception and strftime_now).
//
// Not there, because nothing loads other templates and nothing is HTML: extends, include, import,
// block, autoescape, trans, do; the filters batch, slice, groupby, wordwrap, filesizeformat,
// pprint, random, striptags, urlencode, urlize, xmlattr; cycler, joiner, lipsum. Integers have 64
// bits; upper and lower map characters one to one. list.append and its like fail, as they do in
// the sandbox.
#pragma once

#include <ctime>
#include <memory>
#include <string_view>

#include "text/jinja_interpreter.h"

namespace winnow::text::jinja {

// Thread-safe: a render changes nothing in it.
class Template {
 public:
  // Throws TemplateError.
  explicit Template(std::string_view source);

  // The marks of the result: what came from variables that were marked, however it was cut,
  // joined or escaped on the way. Throws TemplateError.
  MarkedText render(const Variables& variables,
                    std::time_t now,
                    const RenderLimits& limits = {}) const;

  // Whether it has a for loop over something of this name: `content`, x.content, x['content'].
  bool loops_over(std::string_view name) const;

 private:
  Body body_;
};

}  // namespace winnow::text::jinja
