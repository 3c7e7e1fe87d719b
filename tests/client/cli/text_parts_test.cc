// Tests documents that are too large for one call.
#include "client/cli/text/text_parts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace linnet::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TextPartsTest, PartsEndAfterNewlinesAndFormTheText) {
  std::string text = "\n";
  for (int line = 0; line < 200; ++line) {
    absl::StrAppend(&text, std::string(line * 7 % 31, 'x'), line % 5 == 0 ? "\r\n" : "\n");
  }
  text += "the end";
  for (size_t max_bytes = 1; max_bytes < text.size() + 2; max_bytes += 1 + max_bytes / 4) {
    const std::vector<absl::string_view> parts = SplitAtLines(text, max_bytes);
    EXPECT_EQ(absl::StrJoin(parts, ""), text);
    for (const absl::string_view part : parts) {
      EXPECT_FALSE(part.empty());
      const bool one_line = part.find('\n') >= part.size() - 1;
      EXPECT_TRUE(part.size() <= max_bytes || one_line) << part;
      EXPECT_TRUE(part.back() == '\n' || part.end() == text.data() + text.size()) << part;
    }
  }
  EXPECT_THAT(SplitAtLines("", 5), IsEmpty());
}

class DocumentTest : public CliTest {
 protected:
  // 10,000 lines of 24 bytes.
  static std::string Document() {
    std::string text;
    for (int line = 0; line < 10000; ++line) {
      absl::StrAppendFormat(&text, "This is line %05d here.\n", line);
    }
    return text;
  }
  static std::string Unmarked(std::string text) {
    for (size_t at; (at = text.find("[de] ")) != std::string::npos;) text.erase(at, 5);
    return text;
  }
  int Translate(const std::vector<std::string>& more, const std::string& input) {
    std::vector<std::string> arguments = {"translate", "--from", "en", "--to", "de", "--document"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments, input);
  }
};

TEST_F(DocumentTest, JoinsTheAnswersOfParts) {
  const std::string text = Document();
  EXPECT_EQ(Translate({}, text), kExitOk) << err_;
  EXPECT_EQ(Unmarked(out_), text);
  EXPECT_THAT(Sent(), SizeIs(testing::Gt(3u)));
  for (const std::string& part : Sent()) EXPECT_LE(part.size(), kBytesPerPart);
  out_is_terminal_ = true;
  EXPECT_EQ(Translate({}, text), kExitOk) << err_;
  EXPECT_EQ(Unmarked(out_), text) << "the streamed text is the whole text";
}

TEST_F(DocumentTest, DoesNotSendPartsOfUnicodeWhiteSpace) {
  const std::string line(kBytesPerPart - 1, 'x');
  std::string blank;
  for (size_t at = 0; at + 4 < kBytesPerPart; at += 4) blank += "\u3000\n";
  const std::string text = line + "\n" + blank + "\n" + line + "\n";
  for (const bool terminal : {false, true}) {
    out_is_terminal_ = terminal;
    EXPECT_EQ(Translate({}, text), kExitOk) << err_;
    EXPECT_EQ(Unmarked(out_), text);
  }
  for (const std::string& part : Sent()) EXPECT_THAT(part, HasSubstr("x"));
}

TEST_F(DocumentTest, HalvesPartsThatTheServerFindsTooLarge) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    if (request.contents(0).size() > 20) {
      return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "call is too much", "CALL_TOO_LARGE",
                         "contents");
    }
    v1::Translation& answer = *response.add_translations();
    answer.set_text("[de] " + request.contents(0));
    answer.set_finish_reason(request.contents(0) == "three\n" ? v1::FINISH_REASON_LENGTH
                                                              : v1::FINISH_REASON_STOP);
    answer.mutable_usage()->set_source_tokens(10);
    v1::Segment& segment = *answer.add_segments();
    segment.set_source_end(request.contents(0).size());
    segment.set_target_begin(5);
    segment.set_target_end(answer.text().size());
    segment.add_words()->set_target_begin(5);
    response.mutable_timings()->mutable_total()->set_nanos(600'000'000);
    return grpc::Status::OK;
  };
  const std::string text = "one and one\ntwo and two\n\n\nthree and three\nfour";
  ClientOptions options;
  options.server = server_.address();
  absl::StatusOr<Client> client = Client::Create(options);
  ASSERT_TRUE(client.ok());
  v1::TranslateRequest request;
  request.add_contents(text);
  const auto response = TranslateInParts(*client, request, {});
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::Translation& answer = response->translations(0);
  EXPECT_EQ(Unmarked(answer.text()), text);
  for (const v1::Segment& segment : answer.segments()) {
    EXPECT_EQ(text.substr(segment.source_begin(), segment.source_end() - segment.source_begin()),
              answer.text().substr(segment.target_begin(),
                                   segment.target_end() - segment.target_begin()));
    EXPECT_EQ(segment.words(0).target_begin(), segment.target_begin());
  }
  const int parts = answer.segments_size();
  EXPECT_GT(parts, 2);
  EXPECT_EQ(answer.usage().source_tokens(), 10 * parts);
  EXPECT_EQ(absl::ToInt64Milliseconds(absl::Seconds(response->timings().total().seconds()) +
                                      absl::Nanoseconds(response->timings().total().nanos())),
            600 * parts);
  out_is_terminal_ = true;
  EXPECT_EQ(Translate({}, text), kExitOk) << err_;
  EXPECT_EQ(Unmarked(out_), text + "\n") << "streamed to a terminal";
}

TEST_F(DocumentTest, UsesTheLanguageDetectedInTheFirstPartForTheOthers) {
  *server_.models.add_models() = ModelOf("en-de", v1::TASK_TRANSLATE, "en", "de");
  *server_.models.add_models() = ModelOf("fr-de", v1::TASK_TRANSLATE, "fr", "de");
  std::vector<std::string> languages;
  server_.on_translate = [&](auto&, const v1::TranslateRequest& request,
                             v1::TranslateResponse& response) {
    languages.push_back(request.source_language_code());
    v1::Translation& answer = *response.add_translations();
    answer.set_text(request.contents(0));
    answer.add_segments()->set_target_end(answer.text().size());
    if (request.source_language_code().empty())
      response.mutable_detected_language()->set_language_code("en");
    return grpc::Status::OK;
  };
  for (const bool terminal : {false, true}) {
    out_is_terminal_ = terminal;
    languages.clear();
    EXPECT_EQ(Run({"translate", "--to", "de", "--document"}, Document()), kExitOk) << err_;
    ASSERT_THAT(languages, SizeIs(testing::Gt(1u)));
    EXPECT_EQ(languages.front(), "");
    EXPECT_THAT(std::vector(languages.begin() + 1, languages.end()), testing::Each("en"));
  }
}

TEST_F(DocumentTest, RefusesALineThatIsTooLarge) {
  server_.on_translate = [](auto&, const v1::TranslateRequest& request,
                            v1::TranslateResponse& response) {
    if (request.contents(0).size() > 20) {
      return ServerError(grpc::StatusCode::INVALID_ARGUMENT, "call is too much", "CALL_TOO_LARGE",
                         "contents");
    }
    response.add_translations()->set_text(request.contents(0));
    return grpc::Status::OK;
  };
  EXPECT_EQ(Translate({}, "short\na line that is by itself too long\nshort\n"), kExitCode + 3);
  EXPECT_THAT(err_, HasSubstr("call is too much"));
  EXPECT_THAT(out_, IsEmpty()) << "a text is answered completely or not at all";
}

}  // namespace
}  // namespace linnet::client
