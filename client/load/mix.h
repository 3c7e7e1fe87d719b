// The kinds of calls of a load run: one, or a weighted mix.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

struct CallKind {
  std::string name;
  double weight = 1;  // above 0; the share of the kind is weight / sum of weights
  // Has no contents: they come from `sentences`, in turn.
  std::variant<v1::TranslateRequest, v1::SummarizeRequest> request;
  std::string texts_name;              // the origin of the sentences, for the report
  std::vector<std::string> sentences;  // not empty
  int texts = 1;                       // per call
  absl::Duration deadline;
};

// Reads a file with a JSON object on each line:
//
//   {"name": "short", "weight": 3, "translate": {"targetLanguageCode": "de"}}
//   {"weight": 1, "summarize": {"model": "en-summary", "options": {"beamSize":
//   1}}, "words": [50, 200],
//    "texts": 2, "deadline": "5s"}
//
// (each of them on one line.) "translate" or "summarize" is the request in protobuf's JSON, so that
// every field of the API may be set; its contents are lines of "file" or made-up sentences of so
// many "words". `defaults` supplies missing values. INVALID_ARGUMENT, with the line, for an unknown
// key or an invalid value.
absl::StatusOr<std::vector<CallKind>> ReadMix(const std::string& file, const CallKind& defaults,
                                              uint64_t seed);

// The kind of call number `index`, drawn by the weights; it depends only on the seed and the index.
size_t PickKind(const std::vector<CallKind>& kinds, uint64_t seed, int64_t index);

// A uniform draw from [0, 1) for a call; draws with different `stream` are independent.
double UniformDraw(uint64_t seed, int64_t index, uint64_t stream);

}  // namespace linnet::client
