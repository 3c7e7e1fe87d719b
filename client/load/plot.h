#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace linnet::client {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; finite, above 0 on a logarithmic axis
  bool line = true;                               // else dots
};

// A plot of a few series over one axis. The y axis begins at zero, or, if it is
// logarithmic, at a power of ten.
struct Plot {
  std::string title;
  std::string x_title;
  std::string y_title;
  bool y_logarithmic = false;
  std::vector<std::pair<double, std::string>> x_ticks;  // empty: round numbers
  std::optional<double> limit;                          // a line across, dashed
  std::optional<double> x_mark;                         // one from below to above
  bool equal = false;                                   // also the line y = x
  std::vector<Series> series;                           // at most six
};

// As a <figure> of HTML with an SVG in it; its colours are the classes s0 to s5
// of the page. Each point tells its numbers under the pointer. Names and titles
// may hold any characters.
std::string PlotHtml(const Plot& plot);

// Text for HTML.
std::string Escape(const std::string& text);

}  // namespace linnet::client
