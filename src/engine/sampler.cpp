#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/logits_row.h"
#include "engine/philox.h"

namespace winnow::engine {
namespace {

constexpr float kGreedyTemperature = 1e-6f;
// Bins of the filters: steps of the weight's logarithm, the last one for all that is lighter.
constexpr int32_t kNumBins = 2048;
constexpr float kBinsPerUnit = 64.0f;
// A first guess at what top_k tokens weigh at least, of the heaviest one's weight.
constexpr float kLightWeight = 1e-6f;

Status bad_logits(int64_t position) {
  return {StatusCode::kInternal,
          fmt::format("the model gave no valid logits for position {} (NaN or infinite)", position),
          ""};
}

bool has_penalties(const SamplingParams& s) {
  return s.frequency_penalty != 0 || s.presence_penalty != 0 || s.repetition_penalty != 1;
}

bool limits_rank(const SamplingParams& s, int32_t vocab_size) {
  return s.top_k > 0 && s.top_k < vocab_size;
}

int32_t bin_of(float logit, float peak, float scale) {
  const float distance = (peak - logit) * scale * kBinsPerUnit;
  return distance < kNumBins - 1 ? static_cast<int32_t>(distance) : kNumBins - 1;
}

}  // namespace

Sampler::Sampler(int32_t vocab_size, std::vector<int32_t> eos_ids)
    : vocab_size_(vocab_size), eos_ids_(std::move(eos_ids)) {
  const auto n = static_cast<size_t>(vocab_size);
  adjusted_.resize(n);
  weights_.resize(n);
  counts_.resize(n);
  bin_counts_.resize(kNumBins);
  bin_sums_.resize(kNumBins);
  block_sums_.reserve(n / kSumBlock + 1);
  bin_ids_.reserve(n);
  heavy_.reserve(n);
  candidates_.reserve(n);
}

Result<int32_t> Sampler::sample(std::span<const float> logits,
                                const GenerateRequest& request,
                                std::span<const int32_t> tokens) {
  WINNOW_CHECK(logits.size() == static_cast<size_t>(vocab_size_), "{} logits, {} tokens",
               logits.size(), vocab_size_);
  const SamplingParams& sampling = request.sampling;
  const auto position = static_cast<int64_t>(tokens.size());
  RowPeak peak = find_peak(logits);
  if (peak.id < 0) return bad_logits(position);
  const auto usable = adjust(logits, request, tokens.subspan(request.prompt_ids.size()));
  if (usable.data() != logits.data()) peak = find_peak(usable);
  if (peak.id < 0) {
    return Status{StatusCode::kInternal, "logit_bias and min_new_tokens leave no token", ""};
  }
  if (sampling.temperature < kGreedyTemperature || sampling.top_k == 1) return peak.id;
  WINNOW_CHECK(sampling.seed.has_value(), "request {} has no seed", request.rid);
  return draw(usable, peak.logit, sampling, uniform_at(*sampling.seed, request.choice, position));
}

std::span<const float> Sampler::adjust(std::span<const float> logits,
                                       const GenerateRequest& request,
                                       std::span<const int32_t> generated) {
  const SamplingParams& sampling = request.sampling;
  const bool penalise = has_penalties(sampling) && !generated.empty();
  const bool is_short = static_cast<int64_t>(generated.size()) < sampling.min_new_tokens;
  if (!penalise && !is_short && sampling.logit_bias.empty()) return logits;
  std::copy(logits.begin(), logits.end(), adjusted_.begin());
  if (penalise) apply_penalties(sampling, generated);
  if (is_short) exclude_stops(sampling);
  for (const auto& [id, bias] : sampling.logit_bias) adjusted_[static_cast<size_t>(id)] += bias;
  return adjusted_;
}

void Sampler::apply_penalties(const SamplingParams& s, std::span<const int32_t> generated) {
  for (const int32_t id : generated) ++counts_[static_cast<size_t>(id)];
  for (const int32_t id : generated) {
    int32_t& count = counts_[static_cast<size_t>(id)];
    if (count == 0) continue;  // done at its first occurrence
    float& logit = adjusted_[static_cast<size_t>(id)];
    logit -= s.frequency_penalty * static_cast<float>(count) + s.presence_penalty;
    logit = logit >= 0 ? logit / s.repetition_penalty : logit * s.repetition_penalty;
    count = 0;
  }
}

void Sampler::exclude_stops(const SamplingParams& sampling) {
  const auto exclude = [&](int32_t id) {
    if (id >= 0 && id < vocab_size_) {
      adjusted_[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
    }
  };
  std::for_each(sampling.stop_token_ids.begin(), sampling.stop_token_ids.end(), exclude);
  if (!sampling.ignore_eos) std::for_each(eos_ids_.begin(), eos_ids_.end(), exclude);
}

int32_t Sampler::draw(std::span<const float> logits,
                      float peak,
                      const SamplingParams& sampling,
                      double u) {
  const float scale = 1.0f / sampling.temperature;
  exp_weights(logits, peak, scale, weights_);
  if (!limits_rank(sampling, vocab_size_) && sampling.top_p >= 1 && sampling.min_p <= 0) {
    return draw_from_all(u);
  }
  filter(logits, peak, scale, sampling);
  return draw_from_candidates(u);
}

// The first token, in order of ids, at which the running sum passes u of the whole.
int32_t Sampler::draw_from_all(double u) {
  double rest = u * sum_blocks(weights_, block_sums_);
  size_t block = 0;
  while (block + 1 < block_sums_.size() && rest >= block_sums_[block]) rest -= block_sums_[block++];
  int32_t last = -1;
  for (size_t i = block * kSumBlock; i < weights_.size(); ++i) {
    if (weights_[i] == 0) continue;
    last = static_cast<int32_t>(i);
    rest -= weights_[i];
    if (rest < 0) return last;
  }
  // Rounding let the last block end too soon: the last token that can be drawn at all.
  for (size_t i = weights_.size(); last < 0 && i-- > 0;) {
    if (weights_[i] > 0) last = static_cast<int32_t>(i);
  }
  return last;
}

void Sampler::filter(std::span<const float> logits,
                     float peak,
                     float scale,
                     const SamplingParams& sampling) {
  Cut cut = kNoCut;
  if (limits_rank(sampling, vocab_size_) || sampling.top_p < 1) {
    const double total = sum_blocks(weights_, block_sums_);
    gather_heavy(total, sampling);
    cut = find_cut(logits, peak, scale, total, sampling);
  } else {
    gather(std::numeric_limits<float>::min());
  }
  candidates_.clear();
  for (const int32_t i : heavy_) {
    const bool stays = logits[i] > cut.logit || (logits[i] == cut.logit && i <= cut.id);
    if (stays && weights_[i] > 0 && weights_[i] >= sampling.min_p) {
      candidates_.push_back({i, weights_[i]});
    }
  }
}

void Sampler::gather(float min_weight) {
  heavy_.resize(static_cast<size_t>(vocab_size_));
  size_t count = 0;
  for (int32_t i = 0; i < vocab_size_; ++i) {
    heavy_[count] = i;
    count += weights_[i] >= min_weight ? 1 : 0;
  }
  heavy_.resize(count);
}

// The tokens among which the cut must fall: mostly few, whatever the vocabulary.
void Sampler::gather_heavy(double total, const SamplingParams& sampling) {
  if (sampling.top_p < 1) {
    // All lighter tokens together have less than half of what top_p leaves out.
    gather(static_cast<float>(0.5 * (1.0 - sampling.top_p) * total / vocab_size_));
    return;
  }
  gather(kLightWeight);
  if (heavy_.size() < static_cast<size_t>(sampling.top_k)) gather(0);
}

// Without sorting the row: whole bins first, then the order inside the one where the cut falls.
Sampler::Cut Sampler::find_cut(std::span<const float> logits,
                               float peak,
                               float scale,
                               double total,
                               const SamplingParams& sampling) {
  std::fill(bin_counts_.begin(), bin_counts_.end(), 0);
  std::fill(bin_sums_.begin(), bin_sums_.end(), 0.0);
  for (const int32_t i : heavy_) {
    const auto bin = static_cast<size_t>(bin_of(logits[i], peak, scale));
    ++bin_counts_[bin];
    bin_sums_[bin] += weights_[i];
  }
  const int64_t max_count = sampling.top_k > 0 ? sampling.top_k : vocab_size_;
  const double max_sum =
      sampling.top_p < 1 ? sampling.top_p * total : std::numeric_limits<double>::infinity();
  int64_t count = 0;
  double sum = 0;
  int32_t bin = 0;
  while (bin + 1 < kNumBins && count + bin_counts_[bin] < max_count &&
         sum + bin_sums_[bin] < max_sum) {
    count += bin_counts_[bin];
    sum += bin_sums_[bin++];
  }
  bin_ids_.clear();
  for (const int32_t i : heavy_) {
    if (bin_of(logits[i], peak, scale) == bin) bin_ids_.push_back(i);
  }
  // Rounding kept the sums of the bins below top_p of the total: all stay.
  if (bin_ids_.empty()) return kNoCut;
  const auto comes_first = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const auto num_left = static_cast<size_t>(max_count - count);
  if (num_left < bin_ids_.size()) {
    std::nth_element(bin_ids_.begin(), bin_ids_.begin() + static_cast<int64_t>(num_left),
                     bin_ids_.end(), comes_first);
    bin_ids_.resize(num_left);
  }
  std::sort(bin_ids_.begin(), bin_ids_.end(), comes_first);
  Cut cut{peak, -1};
  for (const int32_t id : bin_ids_) {
    if (sum >= max_sum && count > 0) break;
    ++count;
    sum += weights_[id];
    cut = {logits[id], id};
  }
  return cut;
}

int32_t Sampler::draw_from_candidates(double u) const {
  double rest = 0;
  for (const Candidate& c : candidates_) rest += c.weight;
  rest *= u;
  for (const Candidate& c : candidates_) {
    rest -= c.weight;
    if (rest < 0) return c.id;
  }
  return candidates_.back().id;
}

Result<TokenLogprob> Sampler::score(std::span<const float> logits,
                                    int32_t id,
                                    const LogprobOptions& options) {
  const RowPeak peak = find_peak(logits);
  if (peak.id < 0) {
    return Status{StatusCode::kInternal, "the model gave no valid logits (NaN or infinite)", ""};
  }
  const double total = log_sum_exp(logits, peak.logit);
  const auto logprob = [&](int32_t of) {
    return static_cast<float>(logits[static_cast<size_t>(of)] - total);
  };
  TokenLogprob out;
  out.id = id;
  out.logprob = logprob(id);
  select_top(logits, options.top, out.top);
  for (auto& [top_id, value] : out.top) value = logprob(top_id);
  out.requested.reserve(options.token_ids.size());
  for (const int32_t wanted : options.token_ids) {
    out.requested.emplace_back(wanted, logprob(wanted));
  }
  return out;
}

}  // namespace winnow::engine
