#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/text/terms.h"
#include "model/runtime/text/tokenizer.h"

namespace linnet::server {

// An entry of a glossary where its source stands in a segment.
struct TermUse {
  int entry = 0;
  int begin = 0;  // bytes of the segment
  int end = 0;
  std::string target;  // what is to stand in the answer
  // Asked of the search. What is beyond its limits (Constraints::kMaxPhrases, and the longest
  // target) is not, and found in the answer only if the model says it by itself.
  std::vector<model::TokenId> tokens = {};
};

// BAD_GLOSSARY, with the path of the field, for what can be told without a model.
absl::Status CheckGlossary(const linnet::v1::Glossary& glossary);

// A request's glossary, at work on the segments of its texts.
class Glossary {
 public:
  // The glossary has passed CheckGlossary and, like the tokenizer (of targets), outlives this.
  Glossary(const linnet::v1::Glossary& glossary, const model::Tokenizer& tokenizer,
           model::TokenId unk);

  // The entries that apply, in the order in which they stand in the segment. BAD_GLOSSARY where the
  // model has no pieces for the target of one.
  absl::StatusOr<std::vector<TermUse>> Find(std::string_view segment, int max_target_tokens) const;

 private:
  const linnet::v1::Glossary& glossary_;
  const model::Tokenizer& tokenizer_;
  model::TokenId unk_;
  model::TermFinder finder_;
};

// What became of them in the answer's text, of which the segment's begins at `begin`, `text` being
// that: met where the target stands in it as whole words, each use in a place of its own.
void FillTerms(const std::vector<TermUse>& uses, std::string_view text, int source_begin, int begin,
               linnet::v1::Segment& segment);

}  // namespace linnet::server
