// The evaluation as one page that needs nothing else: figures on top, every sample below, filters
// by outcome, category, repeat and text.
#pragma once

#include <string>

#include "eval/summary.h"

namespace winnow::eval {

// Reads the samples file one answer at a time; texts beyond some kilobytes lose their middle (the
// samples file has them whole). Throws Error when a file cannot be read or written.
void write_html_report(const std::string& path,
                       const std::string& samples_path,
                       const Summary& summary);

}  // namespace winnow::eval
