#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "linnet/v1/text_service.pb.h"
#include "model/runtime/tokenizer/terms.h"

namespace linnet::server {

// One occurrence of a glossary entry in a text.
struct TermUse {
  int entry = 0;
  int begin = 0;  // bytes [begin, end) of the text
  int end = 0;
  std::string target;  // what the answer has in its place
};

// Bytes of a Glossary object of this glossary.
int64_t GlossaryBytes(const linnet::v1::Glossary& glossary);

// Checks everything that does not need a model. BAD_GLOSSARY with the path of the field.
absl::Status CheckGlossary(const linnet::v1::Glossary& glossary);

// Finds the entries of a request's glossary in the segments of its texts.
class Glossary {
 public:
  // The glossary has passed CheckGlossary. It must outlive this object.
  explicit Glossary(const linnet::v1::Glossary& glossary);

  // Returns the entries that apply, in the order in which they occur in the text.
  std::vector<TermUse> Find(absl::string_view text) const;
  // The same in parts, as model::TermFinder::FindPart.
  int FindPart(absl::string_view text, int begin, int64_t& work, std::vector<TermUse>& uses) const;

 private:
  const linnet::v1::Glossary& glossary_;
  model::TermFinder finder_;
};

// Reports in `segment` which uses are met in `text`, the segment's text in the answer, where it
// starts at byte `begin`. A use is met if its target occurs as whole words; each use needs an
// occurrence of its own.
void FillTerms(const std::vector<TermUse>& uses, absl::string_view text, int source_begin,
               int begin, linnet::v1::Segment& segment);

}  // namespace linnet::server
