#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace linnet::client {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; finite, above 0 on a logarithmic axis
  bool line = true;                               // false: dots
};

// A plot of a few series over one axis. The y axis begins at zero, or at a power of ten if it is
// logarithmic.
struct Plot {
  std::string title;
  std::string x_title;
  std::string y_title;
  bool y_logarithmic = false;
  std::vector<std::pair<double, std::string>> x_ticks;  // empty: round numbers
  std::optional<double> limit;                          // the y of a dashed horizontal line
  std::optional<double> x_mark;                         // the x of a vertical line
  bool equal = false;                                   // draws the line y = x
  std::vector<Series> series;                           // at most four
};

// Returns an HTML <figure> that contains an SVG; the page's classes s0 to s3 set the colours. Each
// point has a tooltip with its numbers. Names and titles may contain any characters.
std::string PlotHtml(const Plot& plot);

// Escapes text for HTML.
std::string Escape(const std::string& text);

}  // namespace linnet::client
