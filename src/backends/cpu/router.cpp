#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/linear.h"
#include "backends/cpu/row_math.h"
#include "base/error.h"

namespace winnow::backends {

namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();
constexpr int kMaxGroups = 64;
constexpr int kMaxExperts = 1024;
constexpr int kMaxPicks = 64;

// Scores of NaN lose every comparison but still name distinct experts (fault B74).
float comparable(float choice) { return std::isnan(choice) ? kExcluded : choice; }

float sum_of_two_best(const float* choices, int count) {
  float first = kExcluded, second = kExcluded;
  for (int i = 0; i < count; ++i) {
    const float value = choices[i];
    if (value > first) {
      second = first;
      first = value;
    } else if (value > second) {
      second = value;
    }
  }
  return count > 1 ? first + second : first;
}

// Marks the keep best of count values: larger first, equal values lower index first.
void keep_best(const float* values, int count, int keep, bool* kept) {
  std::fill(kept, kept + count, false);
  for (int pick = 0; pick < keep; ++pick) {
    int best = -1;
    for (int i = 0; i < count; ++i) {
      if (!kept[i] && (best < 0 || values[i] > values[best])) best = i;
    }
    kept[best] = true;
  }
}

void route_row(const float* logits,
               const ops::RouteExpertsArgs& args,
               int32_t* ids,
               float* weights) {
  const auto num_experts = static_cast<int>(args.gate.out_features);
  const int group_size = num_experts / args.n_group;
  float scores[kMaxExperts], choices[kMaxExperts];
  for (int e = 0; e < num_experts; ++e) {
    scores[e] = sigmoid(logits[e]);
    choices[e] = comparable(scores[e] + (args.bias != nullptr ? args.bias[e] : 0.0f));
  }
  bool group_kept[kMaxGroups];
  float group_scores[kMaxGroups];
  for (int g = 0; g < args.n_group; ++g) {
    group_scores[g] = sum_of_two_best(choices + g * group_size, group_size);
  }
  keep_best(group_scores, args.n_group, args.topk_group, group_kept);
  bool kept[kMaxExperts] = {};
  for (int pick = 0; pick < args.num_experts_per_tok; ++pick) {
    int best = -1;
    for (int e = 0; e < num_experts; ++e) {
      if (kept[e] || !group_kept[e / group_size]) continue;
      if (best < 0 || choices[e] > choices[best]) best = e;
    }
    kept[best] = true;
  }
  int count = 0;
  float sum = 0;
  for (int e = 0; e < num_experts; ++e) {
    if (!kept[e]) continue;
    ids[count] = e;
    weights[count++] = scores[e];  // without the bias (fault B73)
    sum += scores[e];
  }
  for (int i = 0; i < count; ++i) {
    if (args.norm_topk_prob) {
      // All scores underflowed: equal logits, so equal weights.
      weights[i] = sum == 0 ? 1.0f / static_cast<float>(count) : weights[i] / sum;
    }
    weights[i] *= args.routed_scaling_factor;
  }
}

}  // namespace

void CpuBackend::route_experts(const ops::RouteExpertsArgs& args) {
  const int64_t num_experts = args.gate.out_features, hidden = args.gate.in_features;
  const int k = args.num_experts_per_tok;
  WINNOW_CHECK(num_experts <= kMaxExperts && args.n_group >= 1 && args.n_group <= kMaxGroups &&
                   num_experts % args.n_group == 0,
               "{} experts in {} groups", num_experts, args.n_group);
  WINNOW_CHECK(args.topk_group >= 1 && args.topk_group <= args.n_group, "topk_group {}",
               args.topk_group);
  WINNOW_CHECK(k >= 1 && k <= kMaxPicks && k <= args.topk_group * (num_experts / args.n_group),
               "num_experts_per_tok {}", k);
  const int64_t chunk = static_cast<int64_t>(workspace_.router_scores.size()) / num_experts;
  WINNOW_CHECK(chunk > 0, "{} experts, prepare() was told {}", num_experts,
               workspace_.shape.n_routed_experts);
  for (int64_t first = 0; first < args.num_rows; first += chunk) {
    const int64_t rows = std::min(chunk, args.num_rows - first);
    float* logits = workspace_.router_scores.data();
    run_linear({.num_rows = rows,
                .x = static_cast<const float*>(args.x) + first * hidden,
                .x_stride = hidden,
                .weights = {&args.gate},
                .y = {logits},
                .y_stride = num_experts});
    for_items(rows, rows * num_experts * 32, [&](int64_t r, int) {
      route_row(logits + r * num_experts, args, args.expert_ids + (first + r) * k,
                args.weights + (first + r) * k);
    });
  }
}

}  // namespace winnow::backends
