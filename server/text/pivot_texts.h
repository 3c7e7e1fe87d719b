#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linnet/v1/text_service.pb.h"
#include "model/runtime/text/segmenter.h"
#include "server/request/text_request.h"
#include "server/text/attention_table.h"
#include "server/text/prepared_text.h"
#include "server/text/text_warnings.h"

namespace linnet::server {

// The translation of a segment of the source into the third language.
struct PivotSegment {
  int content = 0;           // index of its text in the request
  int index = 0;             // of the segment in that text
  bool last = false;         // of that text
  model::TextSegment place;  // in the source
  std::string gap;           // text before it in the answer
  std::string text;          // in the third language; may be empty
  float score = 0;
  bool ended_by_limit = false;
  bool copied = false;
  int source_tokens = 0;
  int target_tokens = 0;
  AttentionTable attention;  // of words, only if alignments were requested
  AttentionTable pieces;     // only for markup
};

// The texts of a call in a third language, between the two models that translate it. Written by the
// stage of the first model, and immutable when that of the second begins.
struct PivotTexts {
  struct Content {
    std::string tail;  // text after its last segment in the answer
    std::optional<linnet::v1::Warning> warning;
    Findings findings;  // of the first model
  };

  // Of the first model's request.
  explicit PivotTexts(const TextRequest& first);
  // Adds a text that the first model has translated.
  void Add(const TextRequest& first, const DecodedText& text);

  std::string language_code;
  std::string model;  // that wrote the segments, and its version
  std::string model_version;
  std::vector<Content> contents;
  std::vector<PivotSegment> segments;  // of all contents, in order

  // Their memory.
  int64_t bytes() const;
};

}  // namespace linnet::server
