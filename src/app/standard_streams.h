// Standard output that ends the program at the first byte it cannot take.
#pragma once

#include <exception>
#include <string_view>

namespace winnow::app {

// Whoever read the output has closed it, as head does: the program ends without a word.
class OutputClosed : public std::exception {
 public:
  const char* what() const noexcept override { return "the standard output was closed"; }
};

// Takes the numbers of standard streams that are closed, so that no socket and no file gets them:
// logs would be written into it. Before anything is opened.
void occupy_standard_streams();

// Writes and flushes. Throws OutputClosed, or Error that names the reason.
void write_out(std::string_view text);
// Flushes what was printed; throws as write_out.
void flush_out();

}  // namespace winnow::app
