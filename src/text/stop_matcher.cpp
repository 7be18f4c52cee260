#include "text/stop_matcher.h"

#include <algorithm>

namespace winnow::text {

StopMatcher::StopMatcher(const std::vector<std::string>& stops, bool keep_stop)
    : keep_stop_(keep_stop) {
  for (const std::string& text : stops) {
    if (text.empty()) continue;
    Stop stop{text, std::vector<uint32_t>(text.size() + 1), 0};
    uint32_t prefix = 0;
    for (size_t n = 1; n < text.size(); ++n) {
      while (prefix > 0 && text[prefix] != text[n]) prefix = stop.fallback[prefix];
      if (text[prefix] == text[n]) ++prefix;
      stop.fallback[n + 1] = prefix;
    }
    stops_.push_back(std::move(stop));
  }
}

void StopMatcher::advance(Stop& stop, char byte) {
  while (stop.matched > 0 && stop.text[stop.matched] != byte) {
    stop.matched = stop.fallback[stop.matched];
  }
  if (stop.text[stop.matched] == byte) ++stop.matched;
}

StopMatcher::Output StopMatcher::append(std::string_view text) {
  if (done_) return {};
  if (stops_.empty()) return {std::string(text), std::nullopt};
  const auto longest = [this](auto better) {
    const Stop* best = nullptr;
    for (const Stop& stop : stops_) {
      if (better(stop) && (!best || stop.matched > best->matched)) best = &stop;
    }
    return best;
  };
  for (const char byte : text) {
    held_.push_back(byte);
    for (Stop& stop : stops_) advance(stop, byte);
    const Stop* hit = longest([](const Stop& s) { return s.matched == s.text.size(); });
    if (!hit) continue;
    done_ = true;
    if (!keep_stop_) held_.resize(held_.size() - hit->text.size());
    return {std::move(held_), hit->text};
  }
  const size_t possible = longest([](const Stop&) { return true; })->matched;
  Output output{held_.substr(0, held_.size() - possible), std::nullopt};
  held_.erase(0, held_.size() - possible);
  return output;
}

std::string StopMatcher::finish() {
  done_ = true;
  std::string rest;
  rest.swap(held_);
  return rest;
}

}  // namespace winnow::text
