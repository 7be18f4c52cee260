#include "bench/serving_plot.h"

#include <algorithm>

#include "bench/statistics.h"
#include "bench/svg_chart.h"
#include "bench/timeline.h"

namespace winnow::bench {

namespace {

constexpr size_t kTimeBins = 120;
constexpr size_t kCurvePoints = 200;

using Points = std::vector<std::pair<double, double>>;

// A gap between two tokens, and when it ended, in seconds from the run's start.
struct Gap {
  double at_s;
  double ms;
};

std::vector<Gap> gaps_of(std::span<const RequestRecord> records, int64_t origin_ns) {
  std::vector<Gap> gaps;
  std::vector<int64_t> times;
  std::vector<double> itls;
  for (const RequestRecord& r : records) {
    if (!r.ok() || r.events.empty()) continue;
    times.clear();
    itls.clear();
    append_token_times(r, times);
    append_itls(r, itls);
    const size_t first = times.size() - itls.size();
    for (size_t i = 0; i < itls.size(); ++i) {
      gaps.push_back({static_cast<double>(times[first + i] - origin_ns) * 1e-9, itls[i] * 1e3});
    }
  }
  return gaps;
}

// Share of the values at or below each, in percent.
Points distribution(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Points points;
  for (size_t i = 0; i <= kCurvePoints && !values.empty(); ++i) {
    const double percent = 100.0 * static_cast<double>(i) / kCurvePoints;
    points.emplace_back(percentile(values, percent), percent);
  }
  return points;
}

Chart over_time(std::string title, std::string y_label, std::vector<Series> series) {
  return {std::move(title), "seconds since the run's start", std::move(y_label), std::move(series)};
}

Chart distribution_chart(std::string title, std::string x_label, std::vector<double> values) {
  return {std::move(title),
          std::move(x_label),
          "percent at or below",
          {{.name = "", .points = distribution(std::move(values))}}};
}

// Median and P99 of the gaps in equal slices of the run.
std::vector<Series> gap_series(const std::vector<Gap>& gaps, double seconds) {
  std::vector<std::vector<double>> bins(kTimeBins);
  for (const Gap& gap : gaps) {
    const double share = seconds > 0 ? gap.at_s / seconds : 0;
    const auto bin = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * (kTimeBins - 1));
    bins[bin].push_back(gap.ms);
  }
  Series median{.name = "median", .points = {}};
  Series p99{.name = "P99", .points = {}};
  for (size_t i = 0; i < kTimeBins; ++i) {
    if (bins[i].empty()) continue;
    std::sort(bins[i].begin(), bins[i].end());
    const double at = seconds * (static_cast<double>(i) + 0.5) / kTimeBins;
    median.points.emplace_back(at, percentile(bins[i], 50));
    p99.points.emplace_back(at, percentile(bins[i], 99));
  }
  return {std::move(median), std::move(p99)};
}

}  // namespace

std::string run_plot(const std::string& title, std::span<const RequestRecord> records) {
  const Seconds seconds = by_second(records);
  Series ttft{.name = "", .kind = Series::Kind::kDots, .points = {}};
  std::vector<double> ttfts;
  double length_s = 0;
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    ttfts.push_back(ttft_s(r) * 1e3);
    ttft.points.emplace_back(static_cast<double>(r.start_ns - seconds.origin_ns) * 1e-9,
                             ttfts.back());
    length_s = std::max(length_s, static_cast<double>(r.last_event_ns - seconds.origin_ns) * 1e-9);
  }
  const std::vector<Gap> gaps = gaps_of(records, seconds.origin_ns);
  std::vector<double> itls;
  itls.reserve(gaps.size());
  for (const Gap& gap : gaps) itls.push_back(gap.ms);
  Series tokens{.name = "tokens/s", .points = {}};
  for (size_t s = 0; s < seconds.tokens.size(); ++s) {
    tokens.points.emplace_back(static_cast<double>(s) + 0.5, seconds.tokens[s]);
  }
  return svg_figure(title,
                    {over_time("Time to first token, by start of the request", "ms", {ttft}),
                     distribution_chart("Time to first token: distribution", "ms", ttfts),
                     over_time("Inter-token latency", "ms", gap_series(gaps, length_s)),
                     distribution_chart("Inter-token latency: distribution", "ms", itls),
                     over_time("Output throughput", "tokens/s", {tokens}),
                     distribution_chart("Output throughput: distribution over seconds", "tokens/s",
                                        seconds.tokens)},
                    2);
}

std::string sweep_plot(const std::string& title, const std::vector<SweepPoint>& points) {
  const auto curve = [&](const char* name, auto latency) {
    Series series{.name = name, .kind = Series::Kind::kLabelledLine, .points = {}};
    for (const SweepPoint& point : points) {
      series.points.emplace_back(point.metrics.output_throughput, latency(point.metrics));
      series.labels.push_back(point.value);
    }
    return series;
  };
  const std::string x_label = "output tokens/s";
  return svg_figure(title,
                    {{"Time per output token against throughput",
                      x_label,
                      "ms",
                      {curve("mean TPOT", [](const Metrics& m) { return m.tpot.mean; }),
                       curve("P99 ITL", [](const Metrics& m) { return m.itl.p99; })}},
                     {"Time to first token against throughput",
                      x_label,
                      "ms",
                      {curve("mean TTFT", [](const Metrics& m) { return m.ttft.mean; }),
                       curve("P99 TTFT", [](const Metrics& m) { return m.ttft.p99; })}}},
                    2);
}

}  // namespace winnow::bench
