#include "app/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace winnow::app {

void occupy_standard_streams() {
  // Standard output is opened for reading, so that writing to it still fails.
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const bool closed = ::fcntl(fd, F_GETFD) < 0 && errno == EBADF;
    if (closed && ::open("/dev/null", kModes[fd]) < 0) return;  // takes the lowest free number: fd
  }
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush_out();
}

void flush_out() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  if (errno == EPIPE) throw OutputClosed();
  throw_error("the standard output cannot be written{}{}", errno == 0 ? "" : ": ",
              errno == 0 ? "" : std::strerror(errno));
}

}  // namespace winnow::app
