// Stop strings over streamed text: holds back only what may still become a stop string, and for
// no longer than that (fault B94).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::text {

class StopMatcher {
 public:
  // keep_stop: the matched string stays at the end of the text (no_stop_trim).
  StopMatcher(std::vector<std::string> stops, bool keep_stop);

  struct Output {
    std::string text;               // safe to send
    std::optional<std::string> matched;  // set once, then nothing more comes
  };
  Output append(std::string_view text);
  std::string finish();  // flushes what was held back

 private:
  std::vector<std::string> stops_;
  bool keep_stop_;
  std::string held_;
  bool done_ = false;
};

}  // namespace winnow::text
