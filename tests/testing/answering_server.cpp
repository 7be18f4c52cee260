#include "testing/answering_server.h"

#include <stdexcept>

namespace winnow::testing {

AnsweringServer::AnsweringServer(Answerer answerer, std::string model)
    : answerer_(std::move(answerer)),
      model_(std::move(model)),
      server_([this](const StubRequest& request) { return answer(request); }) {}

std::vector<json::Value> AnsweringServer::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

StubAnswer AnsweringServer::answer(const StubRequest& request) {
  if (request.target == "/get_model_info") {
    return json_answer(json::dump(json::Object{{"model_path", model_}, {"is_generation", true}}));
  }
  if (request.target == "/v1/models") {
    return json_answer(
        json::dump(json::Object{{"data", json::Array{json::Object{{"id", model_}}}}}));
  }
  const auto body = json::parse(request.body);
  if (!body.ok()) throw std::runtime_error("no JSON: " + request.body);
  return generated(request, body.value());
}

StubAnswer AnsweringServer::generated(const StubRequest& request, const json::Value& body) {
  int64_t idx = 0;
  {
    const std::lock_guard lock(mutex_);
    idx = static_cast<int64_t>(asked_.size());
    asked_.push_back(body);
  }
  const bool chat = request.target == "/v1/chat/completions";
  const std::string prompt =
      chat ? body.find("messages")->as_array().back().find("content")->as_string()
      : request.target == "/generate" ? body.find("text")->as_string()
                                      : body.find("prompt")->as_string();
  const ModelAnswer a = answerer_(prompt, idx);
  if (a.status != 200) {
    return json_answer(json::dump(json::Object{{"error", json::Object{{"message", a.text}}}}),
                       a.status);
  }
  const json::Object usage = {{"prompt_tokens", 7}, {"completion_tokens", a.completion_tokens}};
  if (request.target == "/generate") {
    return json_answer(json::dump(json::Object{
        {"text", a.text},
        {"meta_info", json::Object{{"finish_reason", json::Object{{"type", a.finish_reason}}},
                                   {"prompt_tokens", 7},
                                   {"completion_tokens", a.completion_tokens},
                                   {"e2e_latency", 0.01}}}}));
  }
  json::Object choice = {{"index", 0}, {"finish_reason", a.finish_reason}};
  if (chat) {
    choice.emplace_back("message", json::Object{{"role", "assistant"},
                                                {"content", a.text},
                                                {"reasoning_content", a.reasoning}});
  } else {
    choice.emplace_back("text", a.text);
  }
  return json_answer(
      json::dump(json::Object{{"object", chat ? "chat.completion" : "text_completion"},
                              {"choices", json::Array{json::Value(std::move(choice))}},
                              {"usage", usage}}));
}

}  // namespace winnow::testing
