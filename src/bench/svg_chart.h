// Line and dot charts as one SVG file that any browser opens.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace winnow::bench {

struct Series {
  enum class Kind { kLine, kDots, kLabelledLine };

  std::string name;  // in the legend; "": not there
  Kind kind = Kind::kLine;
  std::vector<std::pair<double, double>> points;  // those that are not finite are left out
  std::vector<std::string> labels = {};           // of the points of a kLabelledLine
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
};

// The charts in a grid, row by row. Every axis starts at 0.
std::string svg_figure(const std::string& title, const std::vector<Chart>& charts, int columns);

// Ticks at 1, 2 or 5 times a power of ten: from 0 to at least max, a handful of them.
std::vector<double> axis_ticks(double max);

}  // namespace winnow::bench
