#include "model/runtime/text/part_length.h"

#include <algorithm>

namespace linnet::model {
namespace {

constexpr int kMargin = 16;        // share of the tokens that a guess leaves, if these are unequal
constexpr double kUnequal = 1.25;  // times as many tokens in a byte as before

}  // namespace

void PartLength::Add(int64_t bytes, int tokens) {
  last_tokens_per_byte_ = known() ? 0 : last_tokens_per_byte_;
  if (tokens <= max_tokens_) {
    if (bytes > longest_.bytes) longest_ = {bytes, tokens};
    if (bytes >= unfit_.bytes) unfit_ = {};
  } else {
    if (unfit_.bytes == 0 || bytes < unfit_.bytes) unfit_ = {bytes, tokens};
    if (bytes <= longest_.bytes) longest_ = {};
  }
}

double PartLength::TokensPerByte() const {
  if (unfit_.bytes > 0) {
    return static_cast<double>(unfit_.tokens - longest_.tokens) /
           static_cast<double>(unfit_.bytes - longest_.bytes);
  }
  const double mean = std::max(longest_.tokens, 1) / static_cast<double>(longest_.bytes);
  return std::max(mean, last_tokens_per_byte_);
}

int64_t PartLength::Bytes(double tokens) const {
  const double more = tokens - longest_.tokens;
  return longest_.bytes + static_cast<int64_t>(more / TokensPerByte());
}

int64_t PartLength::Guess() const {
  const double before = longest_.tokens / std::max<double>(1, static_cast<double>(longest_.bytes));
  const bool unequal = longest_.bytes > 0 && TokensPerByte() > kUnequal * before;
  return Bytes(unequal ? max_tokens_ - max_tokens_ / kMargin : max_tokens_);
}

void PartLength::StartNext() {
  last_tokens_per_byte_ = unfit_.bytes > 0 ? TokensPerByte() : last_tokens_per_byte_;
  longest_ = unfit_ = {};
}

}  // namespace linnet::model
