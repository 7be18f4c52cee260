#include "server/native_logprobs.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

#include "base/json.h"
#include "server/openai_format.h"

namespace winnow::server {
namespace {

void append_entry(
    std::string& out, const text::Tokenizer& tokenizer, int32_t id, float logprob, bool with_text) {
  out.push_back('[');
  append_logprob_value(out, logprob);
  fmt::format_to(std::back_inserter(out), ",{},", id);
  if (with_text) {
    json::append_string(out, token_text(tokenizer, id));
  } else {
    out += "null";
  }
  out.push_back(']');
}

void append_entries(std::string& out,
                    const text::Tokenizer& tokenizer,
                    const std::vector<std::pair<int32_t, float>>& entries,
                    bool with_text) {
  if (entries.empty()) {
    out += "null";
    return;
  }
  out.push_back('[');
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.push_back(',');
    append_entry(out, tokenizer, entries[i].first, entries[i].second, with_text);
  }
  out.push_back(']');
}

}  // namespace

void NativeLogprobList::append(const text::Tokenizer& tokenizer,
                               const engine::TokenLogprob& logprob,
                               bool with_text) {
  if (size_++ > 0) {
    for (std::string* list : {&tokens_, &top_, &requested_}) list->push_back(',');
  }
  append_entry(tokens_, tokenizer, logprob.id, logprob.logprob, with_text);
  append_entries(top_, tokenizer, logprob.top, with_text);
  append_entries(requested_, tokenizer, logprob.requested, with_text);
}

void NativeLogprobList::clear() {
  for (std::string* list : {&tokens_, &top_, &requested_}) list->clear();
  size_ = 0;
}

void NativeLogprobList::write(std::string& out,
                              std::string_view side,
                              bool top,
                              bool requested) const {
  auto list = [&](std::string_view name, const std::string& items) {
    fmt::format_to(std::back_inserter(out), ",\"{}_{}\":[{}]", side, name, items);
  };
  list("token_logprobs", tokens_);
  if (top) list("top_logprobs", top_);
  if (requested) list("token_ids_logprobs", requested_);
}

}  // namespace winnow::server
