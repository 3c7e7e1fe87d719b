// The C++ client of Linnet. C++17.
//
//   linnet::client::ClientOptions options;
//   options.server = "translate.example:50051";
//   absl::StatusOr<linnet::client::Client> client = linnet::client::Client::Create(options);
//   if (!client.ok()) …
//   linnet::v1::TranslateRequest request;
//   request.add_contents("A dog runs.");
//   request.set_source_language_code("en");
//   request.set_target_language_code("de");
//   absl::StatusOr<linnet::v1::TranslateResponse> response = client->Translate(request);
//   if (!response.ok()) std::cerr << linnet::client::ErrorText(response.status()) << "\n";
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Calls that a server was too busy for (RESOURCE_EXHAUSTED), that it would not begin because it
// shuts down, or that lost it on the way (UNAVAILABLE) are made again, after waits that double from
// `initial_backoff` to `max_backoff`, or that the server asks for, as long as the timeout allows
// it.
struct RetryOptions {
  int max_attempts = 5;  // the first one counted; 1 never retries; at most 5
  absl::Duration initial_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(2);
};

struct ClientOptions {
  // HOST:PORT, "[IPv6]:PORT", or a name with one of gRPC's schemes: "unix:PATH",
  // "dns:///HOST:PORT".
  std::string server = "127.0.0.1:50051";
  // For each call, its retries included.
  absl::Duration timeout = absl::Seconds(60);
  // How long the first call waits for a server that is just starting. At zero, one that cannot be
  // reached is an error at once.
  absl::Duration wait = absl::ZeroDuration();
  RetryOptions retry;
  int32_t max_reply_bytes = 64 << 20;
};

// What belongs to one call and is not in its request.
struct CallOptions {
  // Written to the server's log with the call and returned with errors: at most 128 visible ASCII
  // characters. Empty: the server makes one.
  std::string request_id;
};

// Takes the next part of a text, in the thread that called. False ends the call with CANCELLED.
using OnPart = std::function<bool(const v1::TextPart& part)>;

// A connection to one server. It is made with the first call and made anew when it breaks, so that
// Create succeeds without a server. Any number of threads may call at once.
//
// A status that comes back has the code and the message of the server, and as payloads the details
// of the error, each under its type ("type.googleapis.com/google.rpc.ErrorInfo"). DetailsOf decodes
// them for programs, ErrorText for people.
class Client {
 public:
  // INVALID_ARGUMENT if an option is out of its range.
  static absl::StatusOr<Client> Create(const ClientOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Strings that are not UTF-8 are refused here, with the field and the byte.
  absl::StatusOr<v1::TranslateResponse> Translate(const v1::TranslateRequest& request,
                                                  const CallOptions& options = {});
  absl::StatusOr<v1::SummarizeResponse> Summarize(const v1::SummarizeRequest& request,
                                                  const CallOptions& options = {});
  absl::StatusOr<v1::ScoreResponse> Score(const v1::ScoreRequest& request,
                                          const CallOptions& options = {});
  absl::StatusOr<v1::DetectLanguageResponse> DetectLanguage(
      const v1::DetectLanguageRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::ListModelsResponse> ListModels(const CallOptions& options = {});
  absl::StatusOr<v1::GetModelResponse> GetModel(const v1::GetModelRequest& request,
                                                const CallOptions& options = {});

  // As above, with the text handed on as it becomes certain: the parts of a content, put together,
  // are its text in the response. After an error they are the start of nothing. A call is not made
  // again once a part has come.
  absl::StatusOr<v1::TranslateResponse> StreamTranslate(const v1::TranslateRequest& request,
                                                        const OnPart& on_part,
                                                        const CallOptions& options = {});
  absl::StatusOr<v1::SummarizeResponse> StreamSummarize(const v1::SummarizeRequest& request,
                                                        const OnPart& on_part,
                                                        const CallOptions& options = {});

  // OK if the server, or the service of that name ("linnet.v1.TextService"), takes requests;
  // UNAVAILABLE if it says that it does not; NOT_FOUND if it has no such service. Asked without a
  // retry.
  absl::Status Health(const std::string& service = "");

  // Ends every call that is under way, and each one to come, with CANCELLED. May be called from any
  // thread.
  void Cancel();

 private:
  class Impl;  // keeps gRPC out of this header
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What a program can act on in an error of the server. All empty if the error was made on the way.
struct ErrorDetails {
  std::string reason;                           // "TEXT_TOO_LONG": server/ERRORS.md lists them
  std::map<std::string, std::string> metadata;  // the dynamic parts of the message
  std::string field;                            // the first that is at fault: "contents[1]"
  std::optional<absl::Duration> retry_delay;    // the server asks to be left alone for so long
  std::string request_id;                       // by which the server's log has the call
};
ErrorDetails DetailsOf(const absl::Status& status);

// An error for people: code and message, then a line for each field that is at fault and for what
// else the details say.
std::string ErrorText(const absl::Status& status);

// "0.1.0"
std::string Version();

}  // namespace linnet::client
