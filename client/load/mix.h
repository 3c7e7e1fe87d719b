// The calls of a load run: one kind of them, or a mix.
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
  double weight = 1;  // above 0; its share is that of all weights
  // Without contents: they come from `sentences`, in turn.
  std::variant<v1::TranslateRequest, v1::SummarizeRequest> request;
  std::string texts_name;              // where the sentences are from, for people
  std::vector<std::string> sentences;  // not empty
  int texts = 1;                       // in a call
  absl::Duration deadline;
};

// Reads a file with a JSON object on each line:
//
//   {"name": "short", "weight": 3, "translate": {"targetLanguageCode": "de"}}
//   {"weight": 1, "summarize": {"model": "en-summary", "options": {"beamSize":
//   1}}, "words": [50, 200],
//    "texts": 2, "deadline": "5s"}
//
// (each of them on one line.) "translate" or "summarize" is the request in
// protobuf's JSON, so that every field of the API may be set; its contents are
// lines of "file" or made-up sentences of so many "words". What a line does not
// say is as in `defaults`. INVALID_ARGUMENT, with the line, if it says
// something that does not exist.
absl::StatusOr<std::vector<CallKind>> ReadMix(const std::string& file, const CallKind& defaults,
                                              uint64_t seed);

// The kind of call number `index`, by chance and the weights; the same for the
// same seed, whoever makes it and when.
size_t PickKind(const std::vector<CallKind>& kinds, uint64_t seed, int64_t index);

// Another such number in [0, 1) for a call; `what` makes it independent of
// others.
double Chance(uint64_t seed, int64_t index, uint64_t what);

}  // namespace linnet::client
