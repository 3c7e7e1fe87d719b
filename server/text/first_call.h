#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/text/pivot_texts.h"
#include "server/text/ranked_texts.h"

namespace linnet::server {

// The results of the first of the two calls of a translation by two models, for the second. Written
// by the first, and immutable until the second fills the reply.
struct FirstCall {
  std::string model_key;                    // for the log
  linnet::v1::Timings timings;              // of the first model
  absl::Time began = absl::InfinitePast();  // when the second model's turn came
  std::variant<PivotTexts, RankedTexts> texts;

  // Null if the second model reranks.
  const PivotTexts* pivot() const { return std::get_if<PivotTexts>(&texts); }
  // Keys of the log.
  absl::string_view model_field() const {
    return pivot() != nullptr ? "pivot_model" : "search_model";
  }
  absl::string_view seconds_field() const {
    return pivot() != nullptr ? "pivot_seconds" : "search_seconds";
  }
  int64_t bytes() const {
    return sizeof(*this) + static_cast<int64_t>(timings.SpaceUsedLong()) +
           std::visit([](const auto& texts) { return texts.bytes(); }, texts);
  }
};

}  // namespace linnet::server
