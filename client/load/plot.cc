#include "client/load/plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace linnet::client {
namespace {

// In units of the SVG, which the page scales.
constexpr double kWidth = 640, kHeight = 300;
constexpr double kLeft = 62, kRight = 14, kTop = 12, kBottom = 44;

// From values to places, and what to write at the axis.
class Axis {
 public:
  Axis(double least, double most, double begin, double end, bool logarithmic)
      : logarithmic_(logarithmic), begin_(begin), end_(end) {
    if (logarithmic_) {
      least_ = std::pow(10, std::floor(std::log10(least)));
      most_ = std::pow(10, std::ceil(std::log10(most)));
      if (most_ <= least_) most_ = least_ * 10;
      for (double tick = least_; tick <= most_ * 1.001; tick *= 10) ticks_.push_back(tick);
      return;
    }
    least_ = least;
    most_ = most > least ? most : least + 1;
    const double step = Step((most_ - least_) / 5);
    for (double tick = std::ceil(least_ / step) * step; tick <= most_ + step / 1e6; tick += step) {
      ticks_.push_back(std::abs(tick) < step / 1e6 ? 0 : tick);
    }
  }

  double Place(double value) const {
    const double share = logarithmic_ ? std::log(value / least_) / std::log(most_ / least_)
                                      : (value - least_) / (most_ - least_);
    return begin_ + std::clamp(share, 0.0, 1.0) * (end_ - begin_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  // The next of 1, 2, 5, 10, … times a power of ten.
  static double Step(double about) {
    const double power = std::pow(10, std::floor(std::log10(about)));
    for (double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= about) return factor * power;
    }
    return 10 * power;
  }

  const bool logarithmic_;
  const double begin_, end_;
  double least_, most_;
  std::vector<double> ticks_;
};

struct Bounds {
  double x_least = 0, x_most = 0, y_least = 0, y_most = 0;
  bool any = false;

  void Take(double x, double y) {
    x_least = any ? std::min(x_least, x) : x;
    x_most = any ? std::max(x_most, x) : x;
    y_least = any ? std::min(y_least, y) : y;
    y_most = any ? std::max(y_most, y) : y;
    any = true;
  }
};

Bounds BoundsOf(const Plot& plot) {
  Bounds bounds;
  for (const Series& series : plot.series) {
    for (const auto& [x, y] : series.points) bounds.Take(x, y);
  }
  if (!bounds.any) return bounds;
  if (plot.limit) bounds.y_most = std::max(bounds.y_most, *plot.limit);
  if (!plot.y_logarithmic) bounds.y_least = std::min(0.0, bounds.y_least);
  if (plot.equal) {
    bounds.x_least = std::min(0.0, bounds.x_least);
    bounds.y_most = std::max(bounds.y_most, bounds.x_most);
  }
  if (!plot.y_logarithmic) bounds.y_most *= 1.05;
  return bounds;
}

std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>", x1,
                         y1, x2, y2, style);
}

std::string Text(double x, double y, const char* style, const std::string& text) {
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
  const Bounds bounds = BoundsOf(plot);
  if (!bounds.any) return html + "<p>nothing was measured</p></figure>\n";
  const Axis x_axis(bounds.x_least, bounds.x_most, kLeft, kWidth - kRight, false);
  const Axis y_axis(bounds.y_least, bounds.y_most, kHeight - kBottom, kTop, plot.y_logarithmic);
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
    html += Text(kLeft - 6, y + 4, "end", absl::StrFormat("%g", tick));
  }
  const auto x_tick = [&](double x, const std::string& label) {
    const double place = x_axis.Place(x);
    html += Line(place, kHeight - kBottom, place, kHeight - kBottom + 4, "axis");
    html += Text(place, kHeight - kBottom + 17, "middle", label);
  };
  for (const auto& [x, label] : plot.x_ticks) x_tick(x, label);
  if (plot.x_ticks.empty()) {
    for (double tick : x_axis.ticks()) x_tick(tick, absl::StrFormat("%g", tick));
  }
  html += Line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "axis");
  html += Text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", plot.x_title);
  absl::StrAppendFormat(&html,
                        "<text transform=\"translate(14 %g) rotate(-90)\" "
                        "class=\"middle\">%s</text>",
                        (kTop + kHeight - kBottom) / 2, Escape(plot.y_title));
  if (plot.equal) {
    const double end = std::min(bounds.x_most, bounds.y_most);
    html += Line(x_axis.Place(bounds.x_least), y_axis.Place(bounds.x_least), x_axis.Place(end),
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
