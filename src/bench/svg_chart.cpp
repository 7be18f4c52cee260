#include "bench/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/markup.h"

namespace winnow::bench {

namespace {

constexpr double kChartWidth = 560;
constexpr double kChartHeight = 270;
constexpr double kTitleHeight = 40;
constexpr double kLeft = 70;
constexpr double kRight = 16;
constexpr double kTop = 30;
constexpr double kBottom = 46;
constexpr size_t kMaxDots = 4000;
constexpr const char* kColors[] = {"#1f6fb4", "#d1495b", "#2e8b57", "#8d5fd3"};

bool finite(const std::pair<double, double>& p) {
  return std::isfinite(p.first) && std::isfinite(p.second);
}

std::string text_at(double x, double y, std::string_view style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style,
                     text::escape_markup(text));
}

// One chart with its corner at (left, top).
class Drawing {
 public:
  Drawing(const Chart& chart, double left, double top)
      : chart_(chart), x0_(left + kLeft), y0_(top + kTop) {
    double max_x = 0;
    double max_y = 0;
    for (const Series& series : chart.series) {
      for (const auto& p : series.points) {
        if (!finite(p)) continue;
        max_x = std::max(max_x, p.first);
        max_y = std::max(max_y, p.second);
      }
    }
    x_ticks_ = axis_ticks(max_x);
    y_ticks_ = axis_ticks(max_y);
  }

  std::string svg() {
    axes();
    for (size_t i = 0; i < chart_.series.size(); ++i) {
      draw(chart_.series[i], kColors[i % std::size(kColors)]);
      legend(i);
    }
    return std::move(out_);
  }

 private:
  static constexpr double kWidth = kChartWidth - kLeft - kRight;
  static constexpr double kHeight = kChartHeight - kTop - kBottom;

  double x_of(double x) const { return x0_ + kWidth * x / x_ticks_.back(); }
  double y_of(double y) const { return y0_ + kHeight * (1 - y / y_ticks_.back()); }

  void line(double x1, double y1, double x2, double y2, std::string_view color) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, color);
  }

  void axes() {
    out_ += text_at(x0_, y0_ - 10, "font-weight=\"bold\"", chart_.title);
    for (const double y : y_ticks_) {
      line(x0_, y_of(y), x0_ + kWidth, y_of(y), y == 0 ? "#555" : "#e2e2e2");
      out_ += text_at(x0_ - 6, y_of(y) + 4, "text-anchor=\"end\"", fmt::format("{:g}", y));
    }
    for (const double x : x_ticks_) {
      line(x_of(x), y0_ + kHeight, x_of(x), y0_ + kHeight + 4, "#555");
      out_ +=
          text_at(x_of(x), y0_ + kHeight + 17, "text-anchor=\"middle\"", fmt::format("{:g}", x));
    }
    out_ += text_at(x0_ + kWidth / 2, y0_ + kHeight + 34, "text-anchor=\"middle\"", chart_.x_label);
    const double x = x0_ - 52;
    const double y = y0_ + kHeight / 2;
    out_ += text_at(
        x, y, fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {:.1f} {:.1f})\"", x, y),
        chart_.y_label);
  }

  void draw(const Series& series, const char* color) {
    if (series.kind == Series::Kind::kDots) {
      const size_t step = series.points.size() / kMaxDots + 1;
      for (size_t i = 0; i < series.points.size(); i += step) dot(series.points[i], 2, color);
      return;
    }
    std::string path;
    for (const auto& p : series.points) {
      if (finite(p)) path += fmt::format("{:.1f},{:.1f} ", x_of(p.first), y_of(p.second));
    }
    out_ +=
        fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"{}\"/>\n",
                    color, path);
    if (series.kind != Series::Kind::kLabelledLine) return;
    for (size_t i = 0; i < series.points.size(); ++i) {
      if (!finite(series.points[i])) continue;
      dot(series.points[i], 3.5, color);
      if (i < series.labels.size()) {
        out_ += text_at(x_of(series.points[i].first) + 5, y_of(series.points[i].second) - 6, "",
                        series.labels[i]);
      }
    }
  }

  void dot(const std::pair<double, double>& p, double radius, const char* color) {
    if (!finite(p)) return;
    out_ += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"0.6\"/>\n",
        x_of(p.first), y_of(p.second), radius, color);
  }

  void legend(size_t idx) {
    const std::string& name = chart_.series[idx].name;
    if (name.empty()) return;
    // Beside the title: a curve may be anywhere in the chart.
    constexpr double kEntryWidth = 90;
    const double x = x0_ + kWidth - kEntryWidth * static_cast<double>(chart_.series.size() - idx);
    const double y = y0_ - 10;
    out_ +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", x,
                    y - 9, kColors[idx % std::size(kColors)]);
    out_ += text_at(x + 15, y, "", name);
  }

  const Chart& chart_;
  const double x0_;
  const double y0_;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  std::string out_;
};

}  // namespace

std::vector<double> axis_ticks(double max) {
  constexpr double kIntervals = 5;
  if (!(max > 0) || !std::isfinite(max)) max = 1;
  const double power = std::pow(10, std::floor(std::log10(max / kIntervals)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step * kIntervals >= max) break;
  }
  std::vector<double> ticks = {0};
  while (ticks.back() < max) ticks.push_back(step * static_cast<double>(ticks.size()));
  return ticks;
}

std::string svg_figure(const std::string& title, const std::vector<Chart>& charts, int columns) {
  const auto rows = static_cast<int>((charts.size() + static_cast<size_t>(columns) - 1) /
                                     static_cast<size_t>(columns));
  const double width = kChartWidth * columns;
  const double height = kTitleHeight + kChartHeight * rows;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\" "
      "fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  out += text_at(16, 26, "font-size=\"15\" font-weight=\"bold\"", title);
  for (size_t i = 0; i < charts.size(); ++i) {
    const size_t column = i % static_cast<size_t>(columns);
    const size_t row = i / static_cast<size_t>(columns);
    out += Drawing(charts[i], static_cast<double>(column) * kChartWidth,
                   kTitleHeight + static_cast<double>(row) * kChartHeight)
               .svg();
  }
  return out + "</svg>\n";
}

}  // namespace winnow::bench
