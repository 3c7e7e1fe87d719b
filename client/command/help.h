// The format of --help, wrapped to the width of a terminal.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace linnet::client {

// The placeholder for an option's value: "N", "FILE", "poisson|constant"; empty for a flag.
std::string ValuePlaceholder(const CLI::Option& option);

// A formatter that, unlike CLI11's own, omits checks and excluded flags and wraps descriptions.
class Help final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace linnet::client
