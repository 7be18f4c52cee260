// Pictures of a serving run and of a sweep.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/record.h"
#include "bench/serving_report.h"

namespace winnow::bench {

// TTFT, ITL and throughput over the run's time, each beside its distribution. SVG.
std::string run_plot(const std::string& title, std::span<const RequestRecord> records);

// Latency against throughput, a point a run. SVG.
std::string sweep_plot(const std::string& title, const std::vector<SweepPoint>& points);

}  // namespace winnow::bench
