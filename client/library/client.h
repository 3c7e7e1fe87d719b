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
#include "linnet/v1/admin_service.pb.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Calls that a server was too busy for (RESOURCE_EXHAUSTED), that it would not begin because it
// shuts down, or that lost it on the way (UNAVAILABLE) are made again, after waits that double from
// `initial_backoff` to `max_backoff`, or that the server asks for, as long as the timeout allows
// it, and fewer while many calls fail. A call that an engine failed over is not made again. With
// several servers, one that could not answer before the deadline (DEADLINE_TOO_CLOSE) is followed
// by one other.
struct RetryOptions {
  int max_attempts = 5;  // the first one counted; 1 never retries; at most 5
  absl::Duration initial_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(2);
};

// What makes a connection private and says who calls. Files are PEM and read again when they
// change.
struct TlsOptions {
  bool enabled = false;          // any of what follows enables it as well
  std::string ca_file;           // who may vouch for the server; empty: whom the system trusts
  std::string certificate_file;  // shown to a server that asks who calls (mTLS), with its key
  std::string key_file;
  std::string server_name;  // in the server's certificate, where that is not the host of `server`
};

struct ClientOptions {
  // HOST:PORT or "[IPv6]:PORT" or "unix:PATH": one server, or the balancer before several.
  // "dns:///HOST:PORT", or IP:PORT,IP:PORT,…: calls take turns over all addresses, but for those
  // that cannot be reached and those whose health says that they take no calls now.
  std::string server = "127.0.0.1:50051";
  TlsOptions tls;
  // A file with a bearer token, which goes with each call; read again when it changes. Needs TLS,
  // unless the server is on this machine.
  std::string token_file;
  // For each call, its retries included. For a document: how long it may give no result.
  absl::Duration timeout = absl::Seconds(60);
  // How long the first call waits for a server that is just starting. At zero, one that cannot be
  // reached is an error at once.
  absl::Duration wait = absl::ZeroDuration();
  RetryOptions retry;
  // After so long a silence during a call the server is asked for a sign of life; one that gives
  // none in as long again is gone: UNAVAILABLE.
  absl::Duration keepalive = absl::Seconds(30);
  int32_t max_reply_bytes = 64 << 20;
};

// Ends the calls that it was given to, and those that are still to get it, with CANCELLED. Copies
// are one. Any thread may use it.
class Cancellation {
 public:
  Cancellation();
  void Cancel() const;

  class State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// What belongs to one call and is not in its request.
struct CallOptions {
  // Written to the server's log with the call and returned with errors: at most 128 visible ASCII
  // characters. Empty: the library makes one, the same for all attempts.
  std::string request_id;
  std::optional<Cancellation> cancellation;
  std::optional<absl::Duration> timeout;  // in place of that of the client
};

// Takes the next part of a text, in the thread that called. False ends the call with CANCELLED.
using OnPart = std::function<bool(const v1::TextPart& part)>;

// Gives the next line of a document; nothing at its end. Called in a thread of the library.
using NextLine = std::function<std::optional<std::string>()>;
// Takes what became of line `index`, counted from 0, in their order and in the thread that called:
// a line may fail for itself. False ends the document with CANCELLED.
template <typename Response>
using OnLine = std::function<bool(int64_t index, const absl::StatusOr<Response>& result)>;

// Takes what became of an asynchronous call, once, in a thread of the library, where it must not
// block; for a call that cannot be begun, in the thread that called.
template <typename Response>
using OnDone = std::function<void(absl::StatusOr<Response> result)>;

// A connection to a server, or to several. It is made with the first call and made anew when it
// breaks, so that Create succeeds without a server. Any number of threads may call at once. While
// no call is under way, gRPC looks after connections every 5 s only: one that has failed may take a
// few looks to come back, fewer with GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS=200 set.
//
// A status that comes back has the code and the message of the server, and as payloads the details
// of the error, each under its type ("type.googleapis.com/google.rpc.ErrorInfo"). DetailsOf decodes
// them for programs, ErrorText for people.
class Client {
 public:
  // INVALID_ARGUMENT if an option is out of its range, or a file that it names cannot be read.
  static absl::StatusOr<Client> Create(const ClientOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();  // cancels asynchronous calls and waits for their OnDone: not to be run in one

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

  // Documents of any length: lines are sent as fast as the server takes them and as their results
  // are taken here, so that neither side holds more than a few. `settings` has no contents. Never
  // made again by itself: the status says why there are no more results. It ends when `next_line`
  // has returned, even if it fails before.
  absl::Status TranslateDocument(const v1::TranslateRequest& settings, const NextLine& next_line,
                                 const OnLine<v1::TranslateResponse>& on_line,
                                 const CallOptions& options = {});
  absl::Status SummarizeDocument(const v1::SummarizeRequest& settings, const NextLine& next_line,
                                 const OnLine<v1::SummarizeResponse>& on_line,
                                 const CallOptions& options = {});

  // As those without Async, and they return at once.
  void TranslateAsync(v1::TranslateRequest request, OnDone<v1::TranslateResponse> on_done,
                      const CallOptions& options = {});
  void SummarizeAsync(v1::SummarizeRequest request, OnDone<v1::SummarizeResponse> on_done,
                      const CallOptions& options = {});
  void ScoreAsync(v1::ScoreRequest request, OnDone<v1::ScoreResponse> on_done,
                  const CallOptions& options = {});
  void DetectLanguageAsync(v1::DetectLanguageRequest request,
                           OnDone<v1::DetectLanguageResponse> on_done,
                           const CallOptions& options = {});

  // Makes a server read its models again: docs/API.md. Where `server` is the address for
  // administrators, or the token has that right.
  absl::StatusOr<v1::ReloadResponse> Reload(const v1::ReloadRequest& request,
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
  std::string reason;                           // "TEXT_TOO_LONG": docs/ERRORS.md lists them
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
