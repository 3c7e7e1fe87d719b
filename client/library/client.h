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

// A call is made again if the server was too busy (RESOURCE_EXHAUSTED), shuts down or was lost
// (UNAVAILABLE), and a document continues from its first line without a result. The delay doubles
// from `initial_backoff` to `max_backoff`, or is the one that the server asks for; retries end with
// the timeout, with `max_attempts` that no result lies between, and while many calls fail. A server
// that was there and now refuses connections is tried until the timeout. A call that failed inside
// an engine is not retried. With several servers, a call that one server cannot finish before its
// deadline (DEADLINE_TOO_CLOSE) is sent to one other server.
struct RetryOptions {
  int max_attempts = 5;  // 1 to 5, the first attempt included; 1 never retries
  absl::Duration initial_backoff = absl::Milliseconds(100);  // at least 2 ms
  absl::Duration max_backoff = absl::Seconds(2);
};

// Encryption and client certificates. Files are PEM and are read again when they change.
struct TlsOptions {
  bool enabled = false;          // any other field that is set enables TLS as well
  std::string ca_file;           // trusted authorities; empty: those of the system
  std::string certificate_file;  // client certificate for mTLS, together with key_file
  std::string key_file;
  // Expected in the server's certificate; empty: the host of `server`. A list of servers needs it.
  std::string server_name;
};

struct ClientOptions {
  // HOST:PORT or "[IPv6]:PORT" or "unix:PATH": one server, or the load balancer before several.
  // "dns:///HOST:PORT", or IP:PORT,IP:PORT,…: calls go round-robin over all addresses that can be
  // reached and whose health service reports SERVING.
  std::string server = "127.0.0.1:50051";
  TlsOptions tls;
  // A file with a bearer token that is sent with each call; read again when it changes. Needs TLS,
  // unless the server is on this machine.
  std::string token_file;
  // The timeout of each call, its retries included. A document ends after so long without a result.
  absl::Duration timeout = absl::Seconds(60);
  // The first call waits so long for a server that is starting. At zero, a server that cannot be
  // reached is an error at once.
  absl::Duration wait = absl::ZeroDuration();
  RetryOptions retry;
  // Interval and timeout of HTTP/2 keepalive pings during a call. A server that does not answer a
  // ping in time is treated as lost: UNAVAILABLE.
  absl::Duration keepalive = absl::Seconds(30);
  int32_t max_reply_bytes = 64 << 20;
};

// Cancels every call whose CallOptions hold it, present and future; they return CANCELLED. Copies
// share one state. Thread-safe.
class Cancellation {
 public:
  Cancellation();
  void Cancel() const;

  class State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Settings of one call that are not part of its request.
struct CallOptions {
  // Written to the server's log with the call and returned with errors: at most 128 visible ASCII
  // characters. Empty: the library makes one, the same for all attempts.
  std::string request_id;
  std::optional<Cancellation> cancellation;
  std::optional<absl::Duration> timeout;  // replaces the client's
};

// Receives the next part of a text, in the calling thread. Return false to end the call with
// CANCELLED.
using OnPart = std::function<bool(const v1::TextPart& part)>;

// Returns the next line of a document, or nullopt at its end. Called in a thread of the library; it
// must not throw.
using NextLine = std::function<std::optional<std::string>()>;
// Receives the result of line `index`, counted from 0, in order and in the calling thread. A line
// may fail while the others succeed. Return false to end the document with CANCELLED; it must not
// throw.
template <typename Response>
using OnLine = std::function<bool(int64_t index, const absl::StatusOr<Response>& result)>;

// Receives the result of an asynchronous call exactly once, in a thread of the library, and must
// not block there. If the call cannot be started, it runs in the calling thread.
template <typename Response>
using OnDone = std::function<void(absl::StatusOr<Response> result)>;

// A connection to one or several servers. The first call connects, and gRPC reconnects when the
// connection breaks, so Create succeeds without a server. Thread-safe. While no call is in flight,
// gRPC polls connections every 5 s only, and one that failed may take a few polls to come back; set
// GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS=200 to shorten that.
//
// A returned status has the server's code and message. Its payloads are the error details, each
// under its type ("type.googleapis.com/google.rpc.ErrorInfo"). DetailsOf decodes them for programs,
// ErrorText for people.
class Client {
 public:
  // INVALID_ARGUMENT if an option is out of its range or a file that it names cannot be read.
  static absl::StatusOr<Client> Create(const ClientOptions& options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  // Cancels asynchronous calls and waits for their OnDone, so it must not run inside an OnDone.
  ~Client();

  // Strings that are not UTF-8 are rejected before anything is sent; the error names the field and
  // the byte.
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

  // The same, with each part of a text handed on as soon as it is stable: the concatenated parts of
  // a content are its text in the response. After an error the parts must be discarded. A call is
  // not retried once a part has arrived.
  absl::StatusOr<v1::TranslateResponse> StreamTranslate(const v1::TranslateRequest& request,
                                                        const OnPart& on_part,
                                                        const CallOptions& options = {});
  absl::StatusOr<v1::SummarizeResponse> StreamSummarize(const v1::SummarizeRequest& request,
                                                        const OnPart& on_part,
                                                        const CallOptions& options = {});

  // Documents of any length. Flow control bounds the lines that either side holds: lines are sent
  // as fast as the server reads them and `on_line` returns. `settings` has no contents. If the
  // connection is lost, the document continues on the next from the first line without a result.
  // The status says why there are no more results. The call returns only after `next_line` has
  // returned, even after a failure.
  absl::Status TranslateDocument(const v1::TranslateRequest& settings, const NextLine& next_line,
                                 const OnLine<v1::TranslateResponse>& on_line,
                                 const CallOptions& options = {});
  absl::Status SummarizeDocument(const v1::SummarizeRequest& settings, const NextLine& next_line,
                                 const OnLine<v1::SummarizeResponse>& on_line,
                                 const CallOptions& options = {});

  // Asynchronous variants of the above; they return at once.
  void TranslateAsync(v1::TranslateRequest request, OnDone<v1::TranslateResponse> on_done,
                      const CallOptions& options = {});
  void SummarizeAsync(v1::SummarizeRequest request, OnDone<v1::SummarizeResponse> on_done,
                      const CallOptions& options = {});
  void ScoreAsync(v1::ScoreRequest request, OnDone<v1::ScoreResponse> on_done,
                  const CallOptions& options = {});
  void DetectLanguageAsync(v1::DetectLanguageRequest request,
                           OnDone<v1::DetectLanguageResponse> on_done,
                           const CallOptions& options = {});

  // Makes a server read its models again: docs/ADMINISTRATION.md#adminservice. Needs the
  // administrators' address as `server`, or a token with that right. Not retried.
  absl::StatusOr<v1::ReloadResponse> Reload(const v1::ReloadRequest& request,
                                            const CallOptions& options = {});

  // OK if the server, or the service of that name ("linnet.v1.TextService"), is serving;
  // UNAVAILABLE if it reports NOT_SERVING; NOT_FOUND if it has no such service. Not retried.
  absl::Status Health(const std::string& service = "");

  // Cancels every call, in flight or future. Thread-safe.
  void Cancel();

 private:
  class Impl;  // keeps gRPC out of this header
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The decoded details of a server's error. All fields are empty if the error did not come from the
// server, except for a message beyond gRPC's limits: the library gives that the reason
// MESSAGE_TOO_LARGE, or REPLY_TOO_LARGE beyond max_reply_bytes.
struct ErrorDetails {
  std::string reason;                           // "TEXT_TOO_LONG": docs/ERRORS.md lists them
  std::map<std::string, std::string> metadata;  // the dynamic parts of the message
  std::string field;                            // the first invalid field: "contents[1]"
  std::optional<absl::Duration> retry_delay;    // retry no earlier than after this delay
  std::string request_id;                       // the id of the call in the server's log
};
ErrorDetails DetailsOf(const absl::Status& status);

// An error for people: code and message, then a line for each invalid field and for each other
// detail.
std::string ErrorText(const absl::Status& status);

// "0.1.0"
std::string Version();

}  // namespace linnet::client
