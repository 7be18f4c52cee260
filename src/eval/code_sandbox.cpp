#include "eval/code_sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace winnow::eval {
namespace {

constexpr int kCannotStart = 126;
constexpr uid_t kNobody = 65534;

class ProgramFolder {
 public:
  explicit ProgramFolder(const std::string& program) {
    std::string pattern = (std::filesystem::temp_directory_path() / "winnow_code_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw_error("{}: no temporary folder: {}", pattern, std::strerror(errno));
    }
    path_ = pattern;
    ::chmod(path_.c_str(), 0755);  // nobody must read it
    std::ofstream file(path_ + "/program.py", std::ios::binary);
    file << program;
    if (!file.flush()) throw_error("{}/program.py: cannot be written", path_);
  }
  ~ProgramFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ProgramFolder(const ProgramFolder&) = delete;
  ProgramFolder& operator=(const ProgramFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void limit(__rlimit_resource resource, int64_t value) {
  const auto bound = static_cast<rlim_t>(value);
  const rlimit both{bound, bound};
  ::setrlimit(resource, &both);
}

bool leave_network() {
  const int spaces = CLONE_NEWNET | CLONE_NEWIPC;
  return ::unshare(spaces) == 0 || ::unshare(CLONE_NEWUSER | spaces) == 0;
}

// In the child, between fork and exec: system calls only.
[[noreturn]] void become_python(const char* folder, const SandboxLimits& limits) {
  ::setpgid(0, 0);
  leave_network();
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  if (::chdir(folder) != 0) ::_exit(kCannotStart);
  limit(RLIMIT_CPU, static_cast<int64_t>(limits.timeout_s) + 1);
  limit(RLIMIT_AS, limits.memory_bytes);
  limit(RLIMIT_FSIZE, limits.file_bytes);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, 64);
  if (::geteuid() == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) {
      ::_exit(kCannotStart);
    }
  }
  limit(RLIMIT_NPROC, 0);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  char python[] = "/usr/bin/python3";
  char isolated[] = "-I";
  char no_bytecode[] = "-B";
  char program[] = "program.py";
  char path[] = "PATH=/usr/bin:/bin";
  char* argv[] = {python, isolated, no_bytecode, program, nullptr};
  char* environment[] = {path, nullptr};
  ::execve(python, argv, environment);
  ::_exit(kCannotStart);
}

// Polls: a signal handler or a waiting thread a program would be more to get wrong.
int wait_until(pid_t child, double timeout_s, bool& timed_out) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended != 0) break;
    if (std::chrono::steady_clock::now() >= deadline) {
      timed_out = true;
      ::kill(-child, SIGKILL);
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(-child, SIGKILL);  // what it left behind
  return status;
}

}  // namespace

ProgramEnd run_python(const std::string& program, const SandboxLimits& limits) {
  const ProgramFolder folder(program);
  const pid_t child = ::fork();
  if (child < 0) throw_error("cannot start a program: {}", std::strerror(errno));
  if (child == 0) become_python(folder.path().c_str(), limits);
  ::setpgid(child, child);
  bool timed_out = false;
  const int status = wait_until(child, limits.timeout_s, timed_out);
  if (timed_out || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) {
    return ProgramEnd::kTimedOut;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotStart) {
    throw_error("/usr/bin/python3 cannot be run in the sandbox");
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ProgramEnd::kPassed : ProgramEnd::kFailed;
}

bool sandbox_cuts_network() {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) ::_exit(leave_network() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace winnow::eval
