#include "client/load/plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace linnet::client {
namespace {

// Sizes in units of the SVG, which the page scales.
constexpr double kWidth = 640, kHeight = 300;
constexpr double kLeft = 62, kRight = 14, kTop = 12, kBottom = 44;

// Maps values to coordinates and chooses the ticks of an axis.
class Axis {
 public:
  Axis(double min, double max, double begin, double end, bool logarithmic)
      : logarithmic_(logarithmic), begin_(begin), end_(end) {
    if (logarithmic_) {
      min_ = std::pow(10, std::floor(std::log10(min)));
      max_ = std::pow(10, std::ceil(std::log10(max)));
      if (max_ <= min_) max_ = min_ * 10;
      for (double tick = min_; tick <= max_ * 1.001; tick *= 10) ticks_.push_back(tick);
      return;
    }
    min_ = min;
    max_ = max > min ? max : min + 1;
    const double step = Step((max_ - min_) / 5);
    for (double tick = std::ceil(min_ / step) * step; tick <= max_ + step / 1e6; tick += step) {
      ticks_.push_back(std::abs(tick) < step / 1e6 ? 0 : tick);
    }
  }

  double Place(double value) const {
    const double share = logarithmic_ ? std::log(value / min_) / std::log(max_ / min_)
                                      : (value - min_) / (max_ - min_);
    return begin_ + std::clamp(share, 0.0, 1.0) * (end_ - begin_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  // The next larger of 1, 2 and 5 times a power of ten.
  static double Step(double about) {
    const double power = std::pow(10, std::floor(std::log10(about)));
    for (double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= about) return factor * power;
    }
    return 10 * power;
  }

  const bool logarithmic_;
  const double begin_, end_;
  double min_, max_;
  std::vector<double> ticks_;
};

struct Bounds {
  double x_min = 0, x_max = 0, y_min = 0, y_max = 0;
  bool any = false;

  void Take(double x, double y) {
    x_min = any ? std::min(x_min, x) : x;
    x_max = any ? std::max(x_max, x) : x;
    y_min = any ? std::min(y_min, y) : y;
    y_max = any ? std::max(y_max, y) : y;
    any = true;
  }
};

Bounds ComputeBounds(const Plot& plot) {
  Bounds bounds;
  for (const Series& series : plot.series) {
    for (const auto& [x, y] : series.points) bounds.Take(x, y);
  }
  if (!bounds.any) return bounds;
  if (plot.limit) bounds.y_max = std::max(bounds.y_max, *plot.limit);
  if (!plot.y_logarithmic) bounds.y_min = std::min(0.0, bounds.y_min);
  if (plot.equal) {
    bounds.x_min = std::min(0.0, bounds.x_min);
    bounds.y_max = std::max(bounds.y_max, bounds.x_max);
  }
  if (!plot.y_logarithmic) bounds.y_max *= 1.05;
  return bounds;
}

std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>", x1,
                         y1, x2, y2, style);
}

std::string SvgText(double x, double y, const char* style, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>", x, y, style,
                         Escape(text));
}

std::string SeriesSvg(const Plot& plot, size_t number, const Axis& x_axis, const Axis& y_axis) {
  const Series& series = plot.series[number];
  std::string path, dots;
  for (const auto& [x, y] : series.points) {
    const double px = x_axis.Place(x), py = y_axis.Place(y);
    absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L", px, py);
    absl::StrAppendFormat(&dots,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>%s: %.4g at "
                          "%.4g</title></circle>",
                          px, py, series.line && series.points.size() > 40 ? "2" : "3.5",
                          Escape(series.name), y, x);
  }
  std::string svg = absl::StrFormat("<g class=\"s%d%s\">", number, series.line ? "" : " alone");
  if (series.line && !path.empty()) absl::StrAppend(&svg, "<path d=\"", path, "\"/>");
  return absl::StrCat(svg, dots, "</g>");
}

}  // namespace

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string PlotHtml(const Plot& plot) {
  std::string html = absl::StrCat("<figure><figcaption>", Escape(plot.title), "</figcaption>");
  const Bounds bounds = ComputeBounds(plot);
  if (!bounds.any) return html + "<p>nothing was measured</p></figure>\n";
  const Axis x_axis(bounds.x_min, bounds.x_max, kLeft, kWidth - kRight, false);
  const Axis y_axis(bounds.y_min, bounds.y_max, kHeight - kBottom, kTop, plot.y_logarithmic);
  html += "<p class=\"legend\">";
  for (size_t i = 0; i < plot.series.size(); ++i) {
    absl::StrAppendFormat(&html, "<span class=\"s%d\">%s</span> ", i, Escape(plot.series[i].name));
  }
  if (plot.limit) html += "<span class=\"limit\">objective</span>";
  absl::StrAppendFormat(&html, "</p><svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">",
                        kWidth, kHeight, Escape(plot.title));
  for (double tick : y_axis.ticks()) {
    const double y = y_axis.Place(tick);
    html += Line(kLeft, y, kWidth - kRight, y, "grid");
    html += SvgText(kLeft - 6, y + 4, "end", absl::StrFormat("%g", tick));
  }
  const auto x_tick = [&](double x, const std::string& label) {
    const double place = x_axis.Place(x);
    html += Line(place, kHeight - kBottom, place, kHeight - kBottom + 4, "axis");
    html += SvgText(place, kHeight - kBottom + 17, "middle", label);
  };
  for (const auto& [x, label] : plot.x_ticks) x_tick(x, label);
  if (plot.x_ticks.empty()) {
    for (double tick : x_axis.ticks()) x_tick(tick, absl::StrFormat("%g", tick));
  }
  html += Line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "axis");
  html += SvgText((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", plot.x_title);
  absl::StrAppendFormat(&html,
                        "<text transform=\"translate(14 %g) rotate(-90)\" "
                        "class=\"middle\">%s</text>",
                        (kTop + kHeight - kBottom) / 2, Escape(plot.y_title));
  if (plot.equal) {
    const double end = std::min(bounds.x_max, bounds.y_max);
    html += Line(x_axis.Place(bounds.x_min), y_axis.Place(bounds.x_min), x_axis.Place(end),
                 y_axis.Place(end), "equal");
  }
  if (plot.limit) {
    const double y = y_axis.Place(*plot.limit);
    html += Line(kLeft, y, kWidth - kRight, y, "limit");
  }
  if (plot.x_mark) {
    const double x = x_axis.Place(*plot.x_mark);
    html += Line(x, kTop, x, kHeight - kBottom, "limit");
  }
  for (size_t i = 0; i < plot.series.size(); ++i) html += SeriesSvg(plot, i, x_axis, y_axis);
  return html + "</svg></figure>\n";
}

}  // namespace linnet::client
