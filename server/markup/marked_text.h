#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/markup/elements.h"

namespace linnet::server {

// Bytes [begin, end) of a text.
struct ByteRange {
  int begin = 0;
  int end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Markup in the middle of a line: a tag, a comment, an element that is copied.
struct Code {
  enum class Kind : uint8_t { kOpen, kClose, kEmpty };
  ByteRange source = {};  // of the fragment; not empty
  int at = 0;             // its place in the plain text, between bytes at - 1 and at
  Kind kind = Kind::kEmpty;
  // For kEmpty: it takes a place in the line, so the white space before and behind it, which may be
  // missing in the plain text, goes with it.
  bool visible = false;
  bool space_before = false;
  bool space_after = false;
  // AreWords on its two sides, and the plain text has a blank between them.
  bool between_words = false;
  // It closes an element that this block does not open, so it belongs to the word on its left.
  bool closes = false;
  bool link = false;  // <a> of HTML, which must not be in another one
  uint32_t name = 0;  // of an XML element, which does not go into one with the same; 0 for none
  // The character of the plain text that stands for it, which holds the byte `at` - 1; 0 if none
  // does.
  char32_t stand_in = 0;
  int partner = -1;  // index of the other code of the pair
  int line = 0;      // number of the block
};

// The value of an attribute that is translated.
struct AttributeText {
  ByteRange source;  // of the value in the fragment, without its quotes
  ByteRange plain;   // of the plain text
  char quote = '\0';
};

// The codes of a segment, and the bytes of the fragment that are written with it. The bytes between
// two segments are copied.
struct SegmentCodes {
  int begin = 0;  // codes [begin, end)
  int end = 0;
  ByteRange source = {};
  // Bytes of the fragment within `source`, before and behind the text, that are not codes of the
  // segment: white space.
  std::string before = {};
  std::string behind = {};
};

// A fragment of HTML or XML as a plain text to translate, its codes, and where its bytes come from.
//
// A line of the plain text is a block; its white space is folded as in a browser, its references
// are decoded, and it has no markup. The translated attributes of a block are lines before it.
// Codes come in the order of the fragment, and every pair encloses whole pairs.
//
// Links side by side, and elements whose texts would run together ("...price</b><b>Amount"), are in
// lines of their own; so are XML elements of two names without white space between them.
//
// Where a line has text that is copied, such as <code> or the digits of <sub>, a character for
// private use stands for it (U+F0000 and on). No model can spell it, so it is protected: the model
// reads that something is there and says where it goes. A sentence with more than kMaxStandIns of
// them, which models confuse, has none, and neither has a fragment that uses such characters
// itself.
class MarkedText {
 public:
  static constexpr int kMaxStandIns = 4;  // of a sentence, by its full stops
  static constexpr char32_t kFirstStandIn = 0xF0000;
  static constexpr char32_t kLastStandIn = 0xFFFFD;
  static constexpr int kStandInBytes = 4;
  // True for the end of a word, or of a clause, and the begin of one, which a code with a place in
  // the line keeps apart: "one<br/>two" in XML, "one<img>two".
  static bool AreWords(char before, char behind);
  // The stand-in whose UTF-8 begins at text[at]; 0 if there is none.
  static char32_t StandInAt(absl::string_view text, size_t at);

  // Reads the fragment in one step (MarkedTextReader).
  MarkedText(absl::string_view fragment, const MarkupOptions& options);

  const std::string& text() const { return text_; }
  const std::vector<Code>& codes() const { return codes_; }
  const std::vector<AttributeText>& attributes() const { return attributes_; }
  // Bytes of the fragment for bytes [begin, end) of the plain text; not empty.
  ByteRange SourceRange(int begin, int end) const;
  // The attribute that holds a byte of the plain text; or null.
  const AttributeText* AttributeAt(int at) const;
  // True if the translation of bytes [begin, end), a segment, needs the alignments of its words: a
  // code without a stand-in is between two of its bytes.
  bool HasCodes(int begin, int end) const;
  // The codes of the segment [begin, end); it is in no attribute. The segments beside it end at
  // `previous_end` and begin at `next_begin`; those in attributes do not count.
  SegmentCodes FindCodes(absl::string_view fragment, int begin, int end, int previous_end,
                         int next_begin) const;

  int64_t bytes() const;
  // Upper bound on the memory of a fragment with that many bytes while it is read.
  static int64_t MaxBytes(int64_t fragment_bytes);

 private:
  class Reader;
  friend class MarkedTextReader;
  MarkedText() = default;
  // Bytes of the plain text from `begin` on are those of the fragment from source.begin on, one by
  // one if `same`; otherwise all of them stand for these bytes of the fragment.
  struct Piece {
    int begin = 0;
    ByteRange source;
    bool same = true;
  };

  std::string text_;
  std::vector<Piece> pieces_;
  std::vector<Code> codes_;
  std::vector<AttributeText> attributes_;
};

// Reads a fragment in linear time, in steps. It and its options must be valid UTF-8, and outlive
// this object. One thread at a time may call it.
class MarkedTextReader {
 public:
  MarkedTextReader(absl::string_view fragment, const MarkupOptions& options);
  ~MarkedTextReader();

  // Does about that much work and returns how much it was. The unit is the time to tokenise a byte
  // of prose.
  int64_t Step(int64_t work);
  bool done() const { return reader_ == nullptr; }
  // The fragment, which is read.
  MarkedText Take() { return std::move(text_); }

 private:
  const absl::string_view fragment_;
  const MarkupOptions& options_;
  MarkedText text_;
  std::unique_ptr<MarkedText::Reader> reader_;
};

}  // namespace linnet::server
