#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/runtime/text/paragraphs.h"
#include "model/runtime/text/segmenter.h"
#include "server/request/glossary.h"
#include "server/request/text_request.h"
#include "server/text/prepared_text.h"
#include "server/text/text_reading.h"

namespace linnet::server {

// A part of a text with its tokens, without eos.
struct TokenizedPart {
  model::TextSegment place;
  model::TokenizedText read;
};

// Makes the segments of a text from its tokenised parts, and what belongs to the text as a whole.
// A part of TextPreparer, which owns it. Request, item and glossary must outlive it.
class TextAssembler {
 public:
  TextAssembler(const TextRequest& request, const TextItem& item, const Glossary* glossary,
                HoldMemory hold, int max_tokens);

  // Before anything else. The text is that of `joined` if that is not null, otherwise the item's.
  void Start(std::shared_ptr<const model::JoinedText> joined);
  // Adds the next part as a segment. These functions return how much work that was
  // (model::TextSplitter::Step).
  absl::StatusOr<int64_t> Add(TokenizedPart part);
  // After the last part: reads the target and checks the text as a whole.
  absl::StatusOr<int64_t> Finish();

  const std::string& text() const { return *text_; }
  std::vector<PreparedSegment>& segments() { return prepared_.segments; }
  PreparedText Take() { return std::move(prepared_); }

 private:
  absl::Status SetLengths();
  absl::Status CheckLanguage();

  const TextRequest& request_;
  const TextItem& item_;
  const Glossary* const glossary_;
  const HoldMemory hold_;
  const int max_tokens_;
  const std::string* text_ = nullptr;
  PreparedText prepared_;
  int copied_ = 0;  // bytes of the text up to the end of the last segment
};

}  // namespace linnet::server
