#include "model/runtime/tokenizer/names.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace linnet::model {
namespace {

unsigned char FirstByte(absl::string_view text) {
  return static_cast<unsigned char>(absl::ascii_tolower(text[0]));
}

}  // namespace

Names::Names(std::vector<std::string> names) : names_(std::move(names)) {
  for (int i = 0; i < size(); ++i) by_first_byte_[FirstByte(names_[i])].push_back(i);
}

int Names::StartOf(absl::string_view text) const {
  if (text.empty()) return -1;
  for (const int name : by_first_byte_[FirstByte(text)]) {
    if (absl::StartsWithIgnoreCase(text, names_[name])) return name;
  }
  return -1;
}

std::vector<bool> Names::In(absl::string_view text) const {
  std::vector<bool> in(names_.size());
  for (; !text.empty(); text.remove_prefix(1)) {
    for (const int name : by_first_byte_[FirstByte(text)])
      in[name] = in[name] || absl::StartsWithIgnoreCase(text, names_[name]);
  }
  return in;
}

}  // namespace linnet::model
