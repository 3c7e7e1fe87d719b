#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace linnet::model {

// A text whose hard-wrapped lines are joined, and where its bytes come from.
class JoinedText {
 public:
  // Bytes [begin, end) of the source for bytes [begin, end) of this text; not empty.
  struct Range {
    int begin = 0;
    int end = 0;
  };
  Range SourceOf(int begin, int end) const;

  const std::string& text() const { return text_; }
  // Upper bound on the memory of the joined form of a text.
  static int64_t MaxBytes(absl::string_view text);
  int64_t bytes() const;

 private:
  friend class ParagraphJoiner;

  // Bytes of this text from `begin` on are those of the source from `source` on.
  struct Piece {
    int begin = 0;
    int source = 0;
  };
  void Append(absl::string_view bytes, int source);

  std::string text_;
  std::vector<Piece> pieces_;
};

// Joins the lines of each paragraph of a text that was wrapped at a width, such as a mail, a man
// page or a book in plain text. A line goes on in the next one unless
//
// - one of the two is blank, has no letter, or has a tab behind its indentation;
// - the next line begins with a list mark and a blank ("-", "*", "•", "1.", "(a)", …) or with >, #
// or |;
// - the next line is indented in another way. But the second line of a list item may be indented
//   more, and the second line of another paragraph less;
// - the line is short: the first word of the next line would have fitted on it, with a tenth of the
//   width to spare. The width is that of the longest line of several words in this block, which is
//   the lines between two blank lines;
// - the width of the block is below 40 columns (an address, a poem) or above 160 (not wrapped).
//
// The lines are joined by a blank, and by nothing where one side is in a script without blanks. A
// soft hyphen at a line end is removed, and so is a hyphen between a letter and a lower-case
// letter, unless the block has the word with its hyphen elsewhere, or a conjunction follows ("Haus-
// und"). Blank lines, other line ends and the white space around paragraphs are kept. The function
// looks at one block at a time, so the blocks of a text may be joined separately.
JoinedText JoinParagraphs(absl::string_view text);

// Joins as JoinParagraphs does, in steps. The text must outlive it.
class ParagraphJoiner {
 public:
  explicit ParagraphJoiner(absl::string_view text);
  ~ParagraphJoiner();

  // Does about that much work (TextSplitter::Step), and returns how much it was.
  int64_t Step(int64_t work);
  bool done() const;
  // The joined text, when done.
  JoinedText Take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace linnet::model
