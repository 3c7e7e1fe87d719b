// What --help says, in lines that fit into a terminal.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace linnet::client {

// What an option takes, in a word: "N", "FILE", "poisson|constant"; empty for a flag.
std::string ValueOf(const CLI::Option& option);

// CLI11's own tells of every check that a value goes through and of every flag that another
// excludes, and does not wrap what it says.
class Help final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace linnet::client
