#include "engine/logits_row.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace winnow::engine {
namespace {

constexpr float kMinExponent = -87.0f;  // exp() of less is no normal float

// exp(x) for x <= 0 to 2 ulp: x = n ln 2 + r, a polynomial in r, n into the exponent field.
inline float exp_below_zero(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x < kMinExponent ? kMinExponent : x;
  const float shifted = clamped * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  const float power = std::bit_cast<float>((exponent + 127) << 23);
  return x < kMinExponent ? 0.0f : p * power;
}

// Eight running sums: a fixed order that fits vector registers.
template <typename Term>
double sum_terms(size_t begin, size_t end, const Term& term) {
  std::array<float, 8> sums{};
  size_t i = begin;
  for (; i + 8 <= end; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += term(i + lane);
  }
  for (; i < end; ++i) sums[i % 8] += term(i);
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
  const float* in = logits.data();
  float* out = weights.data();
  for (size_t i = 0; i < logits.size(); ++i) out[i] = exp_below_zero((in[i] - peak) * scale);
}

double sum_blocks(std::span<const float> weights, std::vector<double>& block_sums) {
  block_sums.clear();
  double total = 0;
  for (size_t begin = 0; begin < weights.size(); begin += kSumBlock) {
    const size_t end = std::min(begin + kSumBlock, weights.size());
    block_sums.push_back(sum_terms(begin, end, [&](size_t i) { return weights[i]; }));
    total += block_sums.back();
  }
  return total;
}

double log_sum_exp(std::span<const float> logits, float peak) {
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kSumBlock) {
    const size_t end = std::min(begin + kSumBlock, logits.size());
    sum += sum_terms(begin, end, [&](size_t i) { return exp_below_zero(logits[i] - peak); });
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
