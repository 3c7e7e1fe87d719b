#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::model {

// Names that are looked for at every place of a text, in any case: those of placeholders and of
// other stand-ins. Numbered from 0; none is empty.
class Names {
 public:
  explicit Names(std::vector<std::string> names = {});
  int size() const { return static_cast<int>(names_.size()); }
  const std::string& operator[](int number) const { return names_[number]; }
  // Returns the number of the first one that `text` starts with, or -1.
  int StartOf(absl::string_view text) const;
  // Returns which of them occur in the text.
  std::vector<bool> In(absl::string_view text) const;

 private:
  std::vector<std::string> names_;
  std::array<std::vector<int>, 256> by_first_byte_;  // in lower case
};

}  // namespace linnet::model
