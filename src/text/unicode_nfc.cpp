#include "text/unicode_nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "text/unicode_utf8.h"

namespace winnow::text {
namespace {

constexpr int kMaxDecomposed = 32;  // of one character; Unicode's longest canonical one has 4

std::vector<int32_t> decomposed(std::string_view text) {
  std::vector<int32_t> points;
  points.reserve(text.size());
  std::array<int32_t, kMaxDecomposed> buffer;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_trusted(text.data() + at);
    at += c.size;
    const auto count = utf8proc_decompose_char(static_cast<int32_t>(c.value), buffer.data(),
                                               kMaxDecomposed, UTF8PROC_DECOMPOSE, nullptr);
    WINNOW_CHECK(count >= 0 && count <= kMaxDecomposed, "U+{:04X}: {}", c.value, count);
    points.insert(points.end(), buffer.begin(), buffer.begin() + count);
  }
  return points;
}

int combining_class(int32_t point) { return utf8proc_get_property(point)->combining_class; }

// utf8proc_map would do this by insertion, quadratic in a run of marks that a client can send.
void order_marks(std::vector<int32_t>& points) {
  for (auto at = points.begin(); at != points.end();) {
    at = std::find_if(at, points.end(), [](int32_t p) { return combining_class(p) != 0; });
    const auto end = std::find_if(at, points.end(), [](int32_t p) { return !combining_class(p); });
    std::stable_sort(at, end,
                     [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

}  // namespace

std::string nfc(std::string_view text) {
  std::vector<int32_t> points = decomposed(text);
  order_marks(points);
  const auto count =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  WINNOW_CHECK(count >= 0, "utf8proc: {}", utf8proc_errmsg(count));
  std::string out;
  out.reserve(text.size());
  for (int64_t i = 0; i < count; ++i) {
    append_utf8(out, static_cast<uint32_t>(points[static_cast<size_t>(i)]));
  }
  return out;
}

}  // namespace winnow::text
