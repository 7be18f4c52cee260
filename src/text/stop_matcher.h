// Stop strings over streamed text: holds back only what may still become a stop string, and for
// no longer than that (fault B94).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::text {

// The stop string that is complete first ends the text; of several that are complete at the same
// byte, the longest. So nothing depends on how the text is cut. Cost: O(bytes x stop strings).
class StopMatcher {
 public:
  // keep_stop: the matched string stays at the end of the text (no_stop_trim). Empty stop strings
  // are ignored.
  StopMatcher(const std::vector<std::string>& stops, bool keep_stop);

  struct Output {
    std::string text;                    // safe to send
    std::optional<std::string> matched;  // set once, then nothing more comes
  };
  // text: whole characters.
  Output append(std::string_view text);
  std::string finish();  // flushes what was held back

 private:
  // Knuth-Morris-Pratt, one automaton a stop string.
  struct Stop {
    std::string text;
    std::vector<uint32_t> fallback;  // [n]: longest proper prefix of text that ends text[0..n)
    uint32_t matched = 0;            // bytes of text that end what came so far
  };
  static void advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
  bool keep_stop_;
  std::string held_;
  bool done_ = false;
};

}  // namespace winnow::text
