#include "engine/logits_row.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace winnow::engine {
namespace {

// Here n below is -127 and the exponent field 0, so that the result is 0: no branch is needed.
constexpr float kZeroBelow = -88.0f;

// exp(x) for kZeroBelow <= x <= 0 to 2 ulp: x = n ln 2 + r, a polynomial in r, n into the exponent.
inline float exp_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  return p * std::bit_cast<float>((exponent + 127) << 23);
}

// Eight running sums: a fixed order that fits vector registers.
double sum_of(std::span<const float> terms) {
  std::array<float, 8> sums{};
  size_t i = 0;
  for (; i + 8 <= terms.size(); i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += terms[i + lane];
  }
  for (size_t lane = 0; i < terms.size(); ++i, ++lane) sums[lane] += terms[i];
  double sum = 0;
  for (const float lane : sums) sum += lane;
  return sum;
}

}  // namespace

RowPeak find_peak(std::span<const float> logits) {
  std::array<float, 8> largest;
  largest.fill(-std::numeric_limits<float>::infinity());
  std::array<int32_t, 8> num_nan{};
  const size_t whole = logits.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) {
      const float x = logits[i + lane];
      largest[lane] = largest[lane] > x ? largest[lane] : x;
      num_nan[lane] |= x != x ? 1 : 0;
    }
  }
  for (size_t i = whole; i < logits.size(); ++i) {
    largest[0] = largest[0] > logits[i] ? largest[0] : logits[i];
    num_nan[0] |= logits[i] != logits[i] ? 1 : 0;
  }
  for (const int32_t n : num_nan) {
    if (n != 0) return {};
  }
  const float peak = *std::max_element(largest.begin(), largest.end());
  if (!std::isfinite(peak)) return {};
  const auto at = std::find(logits.begin(), logits.end(), peak);
  return {static_cast<int32_t>(at - logits.begin()), peak};
}

void exp_weights(std::span<const float> logits, float peak, float scale, std::span<float> weights) {
  for (size_t begin = 0; begin < logits.size(); begin += kSumBlock) {
    const size_t count = std::min(kSumBlock, logits.size() - begin);
    const float* in = logits.data() + begin;
    float* out = weights.data() + begin;
    // Two loops: in one, the compiler sees that clamped terms are 0 and branches, term by term.
    for (size_t i = 0; i < count; ++i) {
      const float x = (in[i] - peak) * scale;
      out[i] = x < kZeroBelow ? kZeroBelow : x;
    }
    for (size_t i = 0; i < count; ++i) out[i] = exp_of(out[i]);
  }
}

double sum_blocks(std::span<const float> weights, std::vector<double>& block_sums) {
  block_sums.clear();
  double total = 0;
  for (size_t begin = 0; begin < weights.size(); begin += kSumBlock) {
    block_sums.push_back(
        sum_of(weights.subspan(begin, std::min(kSumBlock, weights.size() - begin))));
    total += block_sums.back();
  }
  return total;
}

double log_sum_exp(std::span<const float> logits, float peak) {
  std::array<float, kSumBlock> weights;
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kSumBlock) {
    const size_t count = std::min(kSumBlock, logits.size() - begin);
    const std::span<float> block = std::span(weights).first(count);
    exp_weights(logits.subspan(begin, count), peak, 1, block);
    sum += sum_of(block);
  }
  return peak + std::log(sum);
}

void select_top(std::span<const float> logits,
                int32_t count,
                std::vector<std::pair<int32_t, float>>& top) {
  const auto better = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  };
  top.clear();
  const auto wanted = std::min(static_cast<size_t>(std::max(count, 0)), logits.size());
  if (wanted == 0) return;
  top.reserve(wanted);
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool is_full = top.size() == wanted;
    if (is_full && logits[i] <= top.front().second) continue;  // a tie goes to the lower id
    if (is_full) {
      std::pop_heap(top.begin(), top.end(), better);  // the worst of the heap stands in front
      top.pop_back();
    }
    top.emplace_back(static_cast<int32_t>(i), logits[i]);
    std::push_heap(top.begin(), top.end(), better);
  }
  std::sort_heap(top.begin(), top.end(), better);
}

}  // namespace winnow::engine
