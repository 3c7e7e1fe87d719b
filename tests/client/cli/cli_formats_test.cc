// Tests of inputs that are no plain text, and of paragraphs whose lines are joined.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/text/text_parts.h"
#include "client/command/text/file_format.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using CliFormatsTest = CliFolderTest;

const std::string kSubRip = "1\r\n00:00:16,700 --> 00:00:18,000\r\nA dog runs.\r\n\r\n";

TEST_F(CliFormatsTest, NameOfAnotherFormatIsRefused) {
  for (const char* name : {"film.srt", "film.VTT", "README.md", "index.html", "de.po", "table.csv",
                           "texts.xliff", "data.json", "letter.docx", "book.pdf", "notes.tar.gz"}) {
    const std::string file = File(name, "A dog runs.\n");
    EXPECT_EQ(Translate({"--file", file}), kExitUsage) << name;
    EXPECT_THAT(err_, AllOf(HasSubstr(absl::StrCat("\"", file, "\" is ")),
                            HasSubstr("only plain text is translated"), HasSubstr("--as-text")));
    EXPECT_THAT(out_, IsEmpty());
    EXPECT_EQ(Translate({"--file", file, "--as-text"}), kExitOk) << err_;
    EXPECT_EQ(out_, "[de] A dog runs.\n");
  }
  for (const char* name : {"plain", "plain.txt", "large.en", "a.b/plain", "dialogue.de.2"})
    EXPECT_EQ(FormatOfName(name), std::nullopt) << name;
  EXPECT_EQ(Translate({"--file", File("more.jsonl", "{\"text\": \"x\"}\n"), "--jsonl"}), kExitOk);
  EXPECT_EQ(Run({"score", "--from", "en", "--to", "de", "--file", File("pairs.tsv", "a\tb\n")}),
            kExitOk)
      << err_;
  EXPECT_EQ(Run({"detect", "--file", File("page.md", "Hund\n")}), kExitOk) << err_;
}

TEST_F(CliFormatsTest, ContentOfAnotherFormatIsRefused) {
  const std::vector<std::pair<std::string, std::string>> contents = {
      {kSubRip, "SubRip"},
      {"\xEF\xBB\xBF" + kSubRip, "SubRip"},
      {"WEBVTT\n\n00:16.700 --> 00:18.000\nA dog.\n", "WebVTT"},
      {"<!DOCTYPE html>\n<p>A dog.</p>\n", "HTML"},
      {"\n  <html lang=\"en\">\n", "HTML"},
      {"<?xml version=\"1.0\"?>\n<a/>\n", "XML"},
      {"# German\n#, fuzzy\nmsgid \"\"\nmsgstr \"\"\n\"Language: de\\n\"\n", "gettext"},
      {std::string("PK\x03\x04\n\0\0", 7), "ZIP"},
      {"%PDF-1.7\n", "PDF"},
      {"\x1F\x8B\b\n", "compressed"},
      {"{\\rtf1 A dog.}\n", "RTF"},
  };
  for (const auto& [content, format] : contents) {
    for (const bool by_file : {false, true}) {
      for (const char* shape : {"--lines", "--document"}) {
        std::vector<std::string> flags = {shape};
        if (by_file) flags.insert(flags.end(), {"--file", File("input", content)});
        EXPECT_EQ(Translate(flags, by_file ? "" : content), kExitLocal) << content;
        EXPECT_THAT(err_, AllOf(HasSubstr(format), HasSubstr("--as-text"))) << content;
        EXPECT_THAT(err_, HasSubstr(by_file ? "/input\" is " : "standard input is "));
        EXPECT_THAT(out_, IsEmpty()) << content;
      }
    }
  }
  EXPECT_EQ(Translate({"--as-text"}, kSubRip), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("[de] A dog runs.\r\n"));
}

TEST_F(CliFormatsTest, PlainTextIsNotTakenForAnotherFormat) {
  for (const std::string text : {"1\n2\n3\n", "WEBVTTs are subtitles\n", "<htmlish marks\n",
                                 "# heading\n", "12:30 - 14:00\n", "msgid \"\"\n", "PK\n",
                                 "17\n00:00 --> never\n", "{\"text\": 1}\n", "---\n"})
    EXPECT_EQ(FormatOfContent(text), std::nullopt) << text;
  EXPECT_EQ(Run({"translate", "--from", "en", "--to", "de", "WEBVTT"}), kExitOk) << "an argument";
}

// --line-breaks join-paragraphs.

const std::string kMail =
    "\xEF\xBB\xBF"
    "Dear all,\nwe meet on Monday\nin the hall.\n \n\n- item\n  goes on\r\n\r\nBye";

TEST_F(CliFormatsTest, ParagraphsAreTextsWhoseLinesTheServerJoins) {
  for (const bool by_file : {false, true}) {
    std::vector<std::string> flags = {"--line-breaks", "join-paragraphs"};
    if (by_file) flags.insert(flags.end(), {"--file", File("mail", kMail)});
    const size_t before = Sent().size();
    EXPECT_EQ(Translate(flags, by_file ? "" : kMail), kExitOk) << err_;
    std::vector<std::string> sent = Sent();
    sent.erase(sent.begin(), sent.begin() + static_cast<int64_t>(before));
    EXPECT_THAT(sent, ElementsAre("Dear all,\nwe meet on Monday\nin the hall.", "- item\n  goes on",
                                  "Bye"));
    EXPECT_EQ(out_,
              "[de] Dear all,\nwe meet on Monday\nin the hall.\n \n\n[de] - item\n  goes on\r\n\r\n"
              "[de] Bye\n");
    EXPECT_EQ(server_.translate_requests().back().line_breaks(), v1::LINE_BREAKS_JOIN_PARAGRAPHS);
  }
  EXPECT_EQ(Translate({"--line-breaks", "keep"}, "one\ntwo\n"), kExitOk);
  EXPECT_EQ(server_.translate_requests().back().line_breaks(), v1::LINE_BREAKS_KEEP);
  EXPECT_EQ(Sent().back(), "two");
  EXPECT_EQ(Translate({"--line-breaks", "join-paragraphs", "--document"}, "one\ntwo\n\nthree"),
            kExitOk);
  EXPECT_EQ(Sent().back(), "one\ntwo\n\nthree");
  EXPECT_EQ(Translate({"--line-breaks", "join-paragraphs", "--lines"}, "one"), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("leave one out"));
  EXPECT_EQ(Translate({"--line-breaks", "wrap"}, "one"), kExitUsage);
}

TEST_F(CliFormatsTest, RefusedParagraphIsNamedByItsLines) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    for (int i = 0; i < request.contents_size(); ++i) {
      if (request.contents(i) == "bad\nlines") {
        const std::string field = absl::StrCat("contents[", i, "]");
        return ServerError(grpc::StatusCode::INVALID_ARGUMENT, field + ": no", "TEXT_TOO_LONG",
                           field);
      }
      response.add_translations()->set_text(request.contents(i));
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(Translate({"--line-breaks", "join-paragraphs", "--on-error", "skip"},
                      "good\n\nbad\nlines\n\nmore\n"),
            kExitRefused);
  EXPECT_THAT(err_, HasSubstr("lines 3 to 4 of standard input: no\n"));
  EXPECT_EQ(out_, "good\n\n\n\nmore\n");
}

TEST_F(CliFormatsTest, ParagraphsResumeAfterThoseThatWereAnswered) {
  std::string input;
  for (int paragraph = 0; paragraph < 80; ++paragraph)
    absl::StrAppend(&input, "line ", 2 * paragraph, "\nline ", 2 * paragraph + 1, "\n\n");
  const std::vector<std::string> flags = {"--line-breaks", "join-paragraphs", "-o", Path("out")};
  std::vector<std::string> resumed = flags;
  resumed.push_back("--resume");
  ASSERT_EQ(Translate({"--line-breaks", "join-paragraphs"}, input), kExitOk);
  const std::string whole = out_;
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    for (const std::string& content : request.contents()) {
      if (content == "line 140\nline 141")
        return ServerError(grpc::StatusCode::INTERNAL, "engine failed", "INTERNAL");
      response.add_translations()->set_text("[de] " + content);
    }
    return grpc::Status::OK;
  };
  ASSERT_EQ(Translate(flags, input), kExitCode + 13);
  EXPECT_THAT(err_, HasSubstr("the same command with --resume continues from there\n"));
  server_.on_translate = nullptr;
  const std::string part = Content("out"), record = Content("out.resume");
  EXPECT_THAT(part, Not(IsEmpty()));
  // A run that was killed may have written more than its record says.
  for (const std::string more : {"", "[de] line 1", "[de] line\nline\n"}) {
    File("out", part + more);
    File("out.resume", record);
    const size_t before = Sent().size();
    EXPECT_EQ(Translate(resumed, input), kExitOk) << err_;
    EXPECT_EQ(Content("out"), whole);
    EXPECT_EQ(Sent()[before], "line 128\nline 129");
    EXPECT_FALSE(std::filesystem::exists(Path("out.resume")));
  }
  File("out.resume", record);
  File("out", part.substr(0, 100));
  EXPECT_EQ(Translate(resumed, input), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("bytes and has "));
  std::filesystem::remove(Path("out.resume"));
  EXPECT_EQ(Translate(resumed, input), kExitLocal);
  EXPECT_THAT(err_, HasSubstr("has no record beside it"));
}

TEST_F(CliFormatsTest, LargePartsEndAtBlankLines) {
  const std::string text = "one\ntwo\n\nthree\nfour\n \nfive\nsix\n";
  for (size_t size = 13; size < text.size(); ++size) {
    std::string joined;
    for (const absl::string_view part : SplitAtLines(text, size, /*at_paragraphs=*/true)) {
      absl::StrAppend(&joined, part);
      if (joined.size() < text.size() && part.size() >= 10) {
        EXPECT_TRUE(joined.ends_with("\n\n") || joined.ends_with("\n \n")) << size << joined;
      }
    }
    EXPECT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace linnet::client
