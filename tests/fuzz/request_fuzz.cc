// A request through the server, from its bytes to its answer: any bytes, any method, with echo
// engines.
#include <google/protobuf/stubs/logging.h>

#include <memory>

#include "model/runtime/text/segmenter.h"
#include "server/base/errors.h"
#include "server/request/request_bytes.h"
#include "server/text/document_stream.h"
#include "tests/fuzz/fuzz.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {
namespace {

// Checks that the error has a reason of the table, its code, and a valid message.
void CheckError(const absl::Status& status) {
  for (const ErrorCondition& row : ErrorTable()) {
    if (ErrorReason(status) != row.name) continue;
    FUZZ_CHECK(row.code == status.code());
    FUZZ_CHECK(model::FirstInvalidUtf8(std::string(status.message())) == -1);
    FUZZ_CHECK(ToProto(status).SerializeAsString().size() < 4096);  // goes into a trailer
    return;
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  FUZZ_CHECK(!"an error without a reason of the table");
}

void CheckText(const std::string& text) { FUZZ_CHECK(model::FirstInvalidUtf8(text) == -1); }

// Checks that segments are in order and inside the texts.
template <typename Reply>
void CheckSegments(const Reply& reply, const std::string& source) {
  CheckText(reply.text());
  int source_end = 0;
  int target_end = 0;
  for (const auto& segment : reply.segments()) {
    FUZZ_CHECK(source_end <= segment.source_begin() &&
               segment.source_begin() < segment.source_end());
    FUZZ_CHECK(target_end <= segment.target_begin() &&
               segment.target_begin() <= segment.target_end());
    source_end = segment.source_end();
    target_end = segment.target_end();
    for (const auto& word : segment.words()) {
      FUZZ_CHECK(segment.target_begin() <= word.target_begin());
      FUZZ_CHECK(word.target_begin() < word.target_end() && word.target_end() <= target_end);
    }
  }
  FUZZ_CHECK(source_end <= static_cast<int>(source.size()));
  FUZZ_CHECK(target_end <= static_cast<int>(reply.text().size()));
}

void CheckReply(const linnet::v1::TranslateRequest& request,
                const linnet::v1::TranslateResponse& response) {
  FUZZ_CHECK(response.translations_size() == request.contents_size());
  for (int i = 0; i < request.contents_size(); ++i)
    CheckSegments(response.translations(i), request.contents(i));
}
void CheckReply(const linnet::v1::SummarizeRequest& request,
                const linnet::v1::SummarizeResponse& response) {
  FUZZ_CHECK(response.summaries_size() == request.contents_size());
  for (int i = 0; i < request.contents_size(); ++i)
    CheckSegments(response.summaries(i), request.contents(i));
}
void CheckReply(const linnet::v1::ScoreRequest& request,
                const linnet::v1::ScoreResponse& response) {
  FUZZ_CHECK(response.scores_size() == request.pairs_size());
  for (const auto& score : response.scores()) CheckText(score.text());
}

void CheckReply(const linnet::v1::DetectLanguageRequest& request,
                const linnet::v1::DetectLanguageResponse& response) {
  FUZZ_CHECK(response.detections_size() == request.contents_size());
}

// Parses the request, calls the method and checks the result. `call` starts a method of TextCalls.
template <typename Request, typename Response, typename Start>
void Call(TextFixture& fixture, const std::string& bytes, Start start) {
  Request request;
  if (absl::Status status = ParseRequest(bytes, request); !status.ok()) return CheckError(status);
  Response response;
  absl::Status result;
  int answers = 0;
  test::Notification done;
  start(*fixture.calls, request, response, [&](absl::Status status) {
    result = std::move(status);
    ++answers;
    done.Open();
  });
  done.Pass();
  FUZZ_CHECK(answers == 1);
  FUZZ_CHECK(fixture.admission.tokens() == 0 && fixture.admission.bytes() == 0);
  if (!result.ok()) return CheckError(result);
  CheckReply(request, response);
}

void Stream(TextFixture& fixture, const std::string& bytes) {
  std::string text;
  Call<linnet::v1::TranslateRequest, linnet::v1::TranslateResponse>(
      fixture, bytes,
      [&](TextCalls& calls, const auto& request, auto& response, TextCalls::Done done) {
        calls.StreamTranslate(
            request, response, {.arrived = absl::Now()},
            [&](linnet::v1::TextPart part) {
              CheckText(part.text());
              text += part.text();
            },
            [&, done = std::move(done)](absl::Status status) mutable {
              std::string whole;
              for (const auto& translation : response.translations()) whole += translation.text();
              if (status.ok()) FUZZ_CHECK(text == whole);
              done(std::move(status));
            });
      });
}

// Sends a document of a single message.
void Document(TextFixture& fixture, const std::string& bytes) {
  linnet::v1::TranslateDocumentRequest message;
  if (absl::Status status = ParseRequest(bytes, message); !status.ok()) return CheckError(status);
  const int lines = message.lines_size();
  // The lines may still use it after the document is finished.
  struct Changes {
    Mutex mu;
    CondVar changed;
    int count ABSL_GUARDED_BY(mu) = 0;
  };
  const auto changes = std::make_shared<Changes>();
  auto document = std::make_shared<DocumentStream<TranslateDocumentTypes>>(
      *fixture.calls, absl::InfiniteFuture(), [changes] {
        MutexLock lock(changes->mu);
        ++changes->count;
        changes->changed.NotifyAll();
      });
  document->Take(std::move(message));
  document->Close();
  int answered = 0;
  while (true) {
    int seen = 0;
    {
      MutexLock lock(changes->mu);
      seen = changes->count;
    }
    while (auto result = document->TakeResult()) {
      ++answered;
      document->Written();
    }
    if (document->finished().has_value()) break;
    MutexLock lock(changes->mu);
    while (changes->count == seen) changes->changed.Wait(changes->mu);
  }
  if (document->finished()->ok()) {
    FUZZ_CHECK(answered == lines);
  } else {
    CheckError(*document->finished());
  }
}

}  // namespace
}  // namespace linnet::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace linnet::server;
  static TextFixture& fixture = *[] {
    google::protobuf::SetLogHandler(nullptr);  // It prints a line for each text that is not UTF-8.
    return new TextFixture({}, {}, {.max_contents = 16, .max_text_bytes = 4096});
  }();
  linnet::fuzz::Input input(data, size);
  const int method = input.Choose(7);
  const std::string bytes = input.Rest();
  switch (method) {
    case 0:
      Call<linnet::v1::TranslateRequest, linnet::v1::TranslateResponse>(
          fixture, bytes,
          [](TextCalls& calls, const auto& request, auto& response, TextCalls::Done done) {
            calls.Translate(request, response, {.arrived = absl::Now()}, std::move(done));
          });
      break;
    case 1:
      Call<linnet::v1::SummarizeRequest, linnet::v1::SummarizeResponse>(
          fixture, bytes,
          [](TextCalls& calls, const auto& request, auto& response, TextCalls::Done done) {
            calls.Summarize(request, response, {.arrived = absl::Now()}, std::move(done));
          });
      break;
    case 2:
      Call<linnet::v1::ScoreRequest, linnet::v1::ScoreResponse>(
          fixture, bytes,
          [](TextCalls& calls, const auto& request, auto& response, TextCalls::Done done) {
            calls.Score(request, response, {.arrived = absl::Now()}, std::move(done));
          });
      break;
    case 3:
      Stream(fixture, bytes);
      break;
    case 4:
      Document(fixture, bytes);
      break;
    case 5:
      Call<linnet::v1::DetectLanguageRequest, linnet::v1::DetectLanguageResponse>(
          fixture, bytes,
          [](TextCalls& calls, const auto& request, auto& response, TextCalls::Done done) {
            calls.DetectLanguage(request, response, {.arrived = absl::Now()}, std::move(done));
          });
      break;
    default: {
      linnet::v1::GetModelRequest request;
      linnet::v1::GetModelResponse response;
      absl::Status status = ParseRequest(bytes, request);
      if (status.ok()) status = fixture.calls->GetModel(request, response);
      if (!status.ok()) CheckError(status);
    }
  }
  return 0;
}
