// The three kinds of errors (ARCHITECTURE.md, "Errors").
//   WINNOW_CHECK  a programmer's mistake: prints the condition and values, aborts.
//   Error         start-up or device trouble: one clear line, the process exits with 1.
//   Status        one request's trouble: becomes an HTTP code, the server lives on.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace winnow {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void throw_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

enum class StatusCode {
  kOk,
  kInvalidArgument,  // 400
  kNotFound,         // 404
  kTooLarge,         // 413
  kUnavailable,      // 503: queue full, shutting down, engine dead
  kCancelled,        // the client went away
  kInternal,         // 500
};

struct Status {
  StatusCode code = StatusCode::kOk;
  std::string message;
  std::string param;  // the request field at fault, "" where none is

  bool ok() const { return code == StatusCode::kOk; }
};

template <typename... Args>
Status invalid_argument(std::string param, fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...),
          std::move(param)};
}

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(state_); }
  const Status& status() const { return std::get<Status>(state_); }
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }

 private:
  std::variant<T, Status> state_;
};

namespace detail {
[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* condition,
                               const std::string& values);
}

}  // namespace winnow

// WINNOW_CHECK(rows > 0, "rows {}", rows)
#define WINNOW_CHECK(condition, ...)                                                            \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::winnow::detail::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
