// Projects the tags of fragments onto given translations: one line each on standard input,
//
//   fragment TAB translation TAB source words TAB target words TAB links
//
// where words are "begin-end", in bytes of the plain text and of the translation, and links
// "source:target:weight", with blanks between them. Writes the translation with its tags.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/markup/marked_answer.h"

using linnet::server::ByteRange;
using linnet::server::MarkedAnswer;
using linnet::server::MarkedText;

namespace {

template <typename Number>
Number Read(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) std::cerr << "not a number: " << text << '\n';
  return static_cast<Number>(number);
}

std::vector<ByteRange> ReadWords(absl::string_view text) {
  std::vector<ByteRange> words;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(word, '-');
    words.push_back({Read<int>(ends[0]), Read<int>(ends[1])});
  }
  return words;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 5) {
      std::cerr << "a line has " << fields.size() << " fields, it must have 5\n";
      return 2;
    }
    const MarkedText text(fields[0], {});
    MarkedAnswer answer(fields[0], text);
    MarkedAnswer::Segment segment;
    segment.end = static_cast<int>(text.text().find_last_not_of(" \n")) + 1;
    segment.next_begin = static_cast<int>(text.text().size());
    segment.translation = fields[1];
    segment.words.source = ReadWords(fields[2]);
    segment.words.target = ReadWords(fields[3]);
    for (const absl::string_view link : absl::StrSplit(fields[4], ' ', absl::SkipEmpty())) {
      const std::vector<absl::string_view> parts = absl::StrSplit(link, ':');
      segment.words.links.push_back(
          {Read<int>(parts[0]), Read<int>(parts[1]), Read<float>(parts[2])});
    }
    const std::string written = answer.Add(segment).text();
    std::cout << written << answer.Finish() << '\n';
  }
}
