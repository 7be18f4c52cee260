// The log-prob lists of /generate's meta_info, grown as JSON text.
#pragma once

#include <string>
#include <vector>

#include "engine/request.h"
#include "text/tokenizer.h"

namespace winnow::server {

// Lists of one side, input or output. Kept as text so that a cumulative event is a copy.
class NativeLogprobList {
 public:
  void append(const text::Tokenizer& tokenizer,
              const engine::TokenLogprob& logprob,
              bool with_text);
  void clear();
  int64_t size() const { return size_; }

  // ,"output_token_logprobs":[...] and the others that were asked for.
  void write(std::string& out, std::string_view side, bool top, bool requested) const;

 private:
  std::string tokens_;     // [logprob, id, text], ...
  std::string top_;        // [[logprob, id, text], ...], ...
  std::string requested_;  // the same for token_ids_logprob
  int64_t size_ = 0;
};

}  // namespace winnow::server
