#include "eval/sample.h"

#include <optional>

namespace winnow::eval {
namespace {

std::optional<Outcome> outcome_of(std::string_view name) {
  if (name == "right") return Outcome::kRight;
  if (name == "wrong") return Outcome::kWrong;
  if (name == "invalid" || name == "refused" || name == "failed") return Outcome::kInvalid;
  return std::nullopt;
}

// Reads members; the first that is missing or of another kind stays in status.
class Members {
 public:
  explicit Members(const json::Value& object) : object_(object) {}

  std::string text(std::string_view name) {
    const json::Value* value = find(name, "text", &json::Value::is_string);
    return value == nullptr ? std::string() : value->as_string();
  }
  int64_t integer(std::string_view name) {
    const json::Value* value = find(name, "a whole number", &json::Value::is_integer);
    return value == nullptr ? 0 : value->as_integer();
  }
  double number(std::string_view name) {
    const json::Value* value = find(name, "a number", &json::Value::is_number);
    return value == nullptr ? 0 : value->as_number();
  }
  const Status& status() const { return status_; }

 private:
  const json::Value* find(std::string_view name,
                          std::string_view kind,
                          bool (json::Value::*is_kind)() const) {
    const json::Value* value = object_.find(name);
    if (value != nullptr && (value->*is_kind)()) return value;
    if (status_.ok())
      status_ = invalid_argument(std::string(name), "\"{}\" must be {}", name, kind);
    return nullptr;
  }

  const json::Value& object_;
  Status status_;
};

}  // namespace

const char* Sample::outcome_name() const {
  if (refused) return "refused";
  if (failed()) return "failed";
  switch (verdict.outcome) {
    case Outcome::kRight:
      return "right";
    case Outcome::kWrong:
      return "wrong";
    case Outcome::kInvalid:
      break;
  }
  return "invalid";
}

json::Value to_json(const Sample& s) {
  return json::Object{{"id", s.id},
                      {"repeat", s.repeat},
                      {"category", s.category},
                      {"outcome", s.outcome_name()},
                      {"score", s.score()},
                      {"label", s.label},
                      {"extracted", s.verdict.extracted},
                      {"finish_reason", s.finish_reason},
                      {"truncated", s.truncated()},
                      {"prompt_tokens", s.prompt_tokens},
                      {"completion_tokens", s.completion_tokens},
                      {"seconds", s.seconds},
                      {"attempts", s.attempts},
                      {"error", s.error},
                      {"prompt", s.prompt},
                      {"reasoning", s.reasoning},
                      {"response", s.response}};
}

Result<Sample> sample_from_json(const json::Value& value) {
  if (!value.is_object()) {
    return invalid_argument("", "must be an object, got {}", value.kind_name());
  }
  Members members(value);
  Sample s;
  s.id = members.text("id");
  s.repeat = members.integer("repeat");
  s.category = members.text("category");
  const std::string outcome = members.text("outcome");
  s.label = members.text("label");
  s.verdict.extracted = members.text("extracted");
  s.finish_reason = members.text("finish_reason");
  s.prompt_tokens = members.integer("prompt_tokens");
  s.completion_tokens = members.integer("completion_tokens");
  s.seconds = members.number("seconds");
  s.attempts = members.integer("attempts");
  s.error = members.text("error");
  s.prompt = members.text("prompt");
  s.reasoning = members.text("reasoning");
  s.response = members.text("response");
  if (!members.status().ok()) return members.status();
  const std::optional<Outcome> read = outcome_of(outcome);
  const bool no_answer = outcome == "refused" || outcome == "failed";
  if (!read || s.repeat < 0 || no_answer == s.error.empty()) {
    return invalid_argument("outcome", "\"outcome\" {}, \"repeat\" {} and \"error\" do not fit",
                            outcome, s.repeat);
  }
  s.refused = outcome == "refused";
  s.verdict.outcome = *read;
  return s;
}

}  // namespace winnow::eval
