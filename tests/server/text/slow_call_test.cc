// The log event of a slow call: the durations of its phases, and no text.
#include <string>

#include "server/base/log.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const CallContext kContext = {.arrived = absl::Now(),
                              .caller = {.client = "team-7", .request_id = "r-42"}};

class SlowCallTest : public ::testing::Test {
 protected:
  // Returns the log of a call on a server with this threshold for slow calls.
  std::string Logged(absl::Duration slow, const TranslateRequest& request,
                     CallContext context = kContext) {
    TextFixture fixture(
        [](const model::Bundle&) {
          return std::make_unique<test::EchoEngine>(
              test::EchoEngine::Options{.limits = kTinyLimits});
        },
        {}, {}, {}, slow);
    TranslateResponse response;
    ::testing::internal::CaptureStderr();
    fixture.Call(&TextCalls::Translate, request, response, context).IgnoreError();
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(SlowCallTest, LogsPhasesAndSizesWithoutText) {
  const std::string line =
      Logged(absl::ZeroDuration(), ToGerman({"The dog runs. A bird sings.", "Open the window"}));
  EXPECT_THAT(line, AllOf(HasSubstr("slow_call code=OK model=en-de client=team-7 request_id=r-42"),
                          HasSubstr(" segments=3 rows=6 ")));
  for (const char* field : {"source_tokens=", "target_tokens=", "seconds=", "wait_seconds=",
                            "tokenize_seconds=", "engine_seconds=", "queue_seconds=",
                            "encode_seconds=", "decode_seconds=", "text_seconds="}) {
    EXPECT_THAT(line, HasSubstr(std::string(" ") + field));
    EXPECT_THAT(line, Not(HasSubstr(std::string(" ") + field + "-"))) << "it came to all of them";
  }
  for (const char* word : {"dog", "bird", "window", "Open"})
    EXPECT_THAT(line, Not(HasSubstr(word)));
}

TEST_F(SlowCallTest, FastCallIsNotLogged) {
  EXPECT_THAT(Logged(absl::Hours(1), ToGerman({"The dog runs."}), {.arrived = absl::Now()}),
              IsEmpty());
}

TEST_F(SlowCallTest, PhasesNotReachedAreDashes) {
  CallContext late = kContext;
  late.deadline = absl::InfinitePast();
  EXPECT_THAT(Logged(absl::ZeroDuration(), ToGerman({"The dog runs."}), late),
              AllOf(HasSubstr("slow_call code=DEADLINE_EXCEEDED"), HasSubstr(" engine_seconds=- "),
                    HasSubstr(" decode_seconds=- ")));
}

TEST_F(SlowCallTest, LogsAsJsonInJsonFormat) {
  ASSERT_THAT(SetLogFormat("json"), IsOk());
  const std::string line = Logged(absl::ZeroDuration(), ToGerman({"The dog runs."}));
  ASSERT_THAT(SetLogFormat("text"), IsOk());
  EXPECT_THAT(line, AllOf(HasSubstr("\"event\":\"slow_call\""), HasSubstr("\"client\":\"team-7\""),
                          HasSubstr("\"rows\":\"2\"")));
}

}  // namespace
}  // namespace linnet::server
