#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/markup/marked_text.h"
#include "server/markup/projection.h"

namespace linnet::server {

// Writes the answer of a fragment from the translations of its segments, in their order. Fragment
// and text must outlive it.
class MarkedAnswer {
 public:
  MarkedAnswer(absl::string_view fragment, const MarkedText& text)
      : fragment_(fragment), text_(text), attributes_(text.attributes().size()) {}

  // A segment of the plain text, bytes [begin, end).
  struct Segment {
    int begin = 0;
    int end = 0;
    absl::string_view translation = {};
    bool copied = false;  // the bytes of the fragment are copied
    WordLinks words = {};
    // Begin of the next segment that is in no attribute, or the size of the plain text.
    int next_begin = 0;
  };
  // What a segment adds to the answer.
  class Part {
   public:
    // The bytes of the fragment behind the last part, and the translation with its codes, where
    // '&',
    // '<' and '>' are references. Empty for a segment of an attribute.
    const std::string& text() const { return text_; }
    // Bytes of text() that are the translation.
    const ByteRange& translation() const { return translation_; }
    // Those of bytes [begin, end) of the translation.
    ByteRange PlaceInPart(int begin, int end) const;

   private:
    friend class MarkedAnswer;
    // Bytes of the translation from `begin` on are at `place` and on, as they are. Codes stand
    // between `before` and `place`.
    struct Piece {
      int begin = 0;
      int before = 0;
      int place = 0;
    };
    void AddPiece(int begin, int before);

    std::string text_;
    ByteRange translation_;
    std::vector<Piece> pieces_;
  };
  Part Add(const Segment& segment);
  // The translation with its codes, without adding it: that of another hypothesis for the segment
  // that comes next.
  std::string Write(const Segment& segment) const;
  // The rest of the fragment. To be called once, at the end.
  std::string Finish();

 private:
  // The translated value of an attribute, up to the byte `done` of the fragment; 0 if there is
  // none.
  struct AttributeValue {
    std::string text;
    int done = 0;
  };

  // Marks the bytes of the translation that are written as they are: a tag of a template that the
  // source has so, such as "{{ a && b }}". References would break it.
  std::vector<bool> FindAsIs(const Segment& segment) const;
  void AddToAttribute(const AttributeText& attribute, const Segment& segment);
  void WriteTranslation(const Segment& segment, const SegmentCodes& codes, Part& part) const;
  // Bytes of the fragment with the translations of the attributes in them.
  std::string Copy(int begin, int end) const;

  const absl::string_view fragment_;
  const MarkedText& text_;
  int copied_ = 0;                          // bytes of the fragment in the answer
  int previous_end_ = 0;                    // of the last segment that is in no attribute
  std::vector<AttributeValue> attributes_;  // parallel to those of text_
};

}  // namespace linnet::server
