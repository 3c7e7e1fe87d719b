// The tokenizer of markup and what is built on it, over any bytes: every byte is in one token, and
// every mark of the fragment returns once in the answer.

#include <algorithm>
#include <string>
#include <vector>

#include "server/markup/markup_tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/server/markup/marked_fixture.h"

using namespace linnet::server;

namespace {

// Checks that the tokens are the fragment, and returns the marks among them, sorted.
std::vector<std::string> Marks(const std::string& fragment, MarkupSyntax syntax) {
  MarkupTokenizer tokenizer(fragment, syntax);
  MarkupToken token;
  std::vector<std::string> marks;
  int end = 0;
  while (tokenizer.Next(token)) {
    FUZZ_CHECK(token.begin == end && token.end > end);
    end = token.end;
    if (token.kind != MarkupToken::Kind::kText)
      marks.push_back(fragment.substr(token.begin, token.end - token.begin));
  }
  FUZZ_CHECK(end == static_cast<int>(fragment.size()));
  std::sort(marks.begin(), marks.end());
  return marks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  linnet::fuzz::Input input(data, size);
  MarkupOptions options;
  options.syntax = input.Choose(2) == 0 ? MarkupSyntax::kHtml : MarkupSyntax::kXml;
  if (input.Choose(2) == 1) options.ignore_tags = {"i"};
  const std::string fragment = input.Rest();
  // The words of each segment in reverse.
  const std::string answer = AnswerOf(
      fragment, options,
      [](absl::string_view source, std::string& translation, MarkedAnswer::Segment& segment) {
        segment.words.source = WordRanges(source);
        for (int i = static_cast<int>(segment.words.source.size()) - 1; i >= 0; --i) {
          const auto begin = static_cast<int>(translation.size());
          const auto [word, end] = segment.words.source[i];
          translation += std::string(source.substr(word, end - word)) + (i > 0 ? " " : "");
          const auto target = static_cast<int>(segment.words.target.size());
          segment.words.target.push_back({begin, begin + end - word});
          segment.words.links.push_back({i, target, 1});
        }
      });
  FUZZ_CHECK(Marks(answer, options.syntax) == Marks(fragment, options.syntax));
  options.attributes = true;
  const MarkedText text(fragment, options);
  FUZZ_CHECK(text.bytes() <= MarkedText::MaxBytes(static_cast<int64_t>(fragment.size())));
  for (const Code& code : text.codes()) FUZZ_CHECK(code.at <= static_cast<int>(text.text().size()));
  return 0;
}
