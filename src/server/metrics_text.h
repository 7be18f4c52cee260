// /metrics: the Prometheus text format. Names are SGLang's, prefix included, so that dashboards
// made for it keep working.
#pragma once

#include <string>
#include <string_view>

#include "engine/engine.h"
#include "server/request_metrics.h"

namespace winnow::server {

std::string metrics_text(const RequestMetrics::Values& values,
                         const engine::EngineStats& stats,
                         int64_t page_size,
                         std::string_view model_name);

}  // namespace winnow::server
