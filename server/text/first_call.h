#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/text/pivot_texts.h"

namespace linnet::server {

// The results of the first of the two calls of a translation through a third language, for the
// second. Written by the first, and immutable until the second fills the reply.
struct FirstCall {
  std::string model_key;                    // for the log
  linnet::v1::Timings timings;              // of the first model
  absl::Time began = absl::InfinitePast();  // when the second model's turn came
  PivotTexts texts;

  int64_t bytes() const {
    return sizeof(*this) + static_cast<int64_t>(timings.SpaceUsedLong()) + texts.bytes();
  }
};

}  // namespace linnet::server
