#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/map.h"
#include "google/protobuf/message.h"
#include "server/base/caller.h"
#include "server/identity/token_file.h"
#include "server/identity/trusted_proxies.h"
#include "server/metrics/metrics.h"
#include "server/rpc/connections.h"
#include "server/rpc/timed_operations.h"
#include "server/schedule/admission.h"

namespace linnet::server {

// What a call was about, for the log: numbers and labels, never text.
struct CallFacts {
  int64_t contents = 0;
  int64_t request_bytes = 0;
  std::string labels;
};

// "team=search,run=7", by key; nothing where they are refused, for then they may say anything.
std::string LabelText(const google::protobuf::Map<std::string, std::string>& labels);

// What every call of a service needs; outlives them.
struct CallServices {
  Metrics& metrics;
  TimedOperations& reads;
  TimedOperations& writes;
  Connections& connections;  // of the port where the service is
  const TrustedProxies& proxies;
  const TokenFile* tokens = nullptr;  // null where no token is asked for
  Admission* admission = nullptr;     // of the memory of its calls; null: it is not counted
};

// Counts and logs one call, its start and its end, and knows on whose behalf it is made
// (ResolveCaller). Its request id is that of the client's `x-request-id`, else a new one; its place
// in a trace that of a valid `traceparent`. The headers of the answer return both, or the trailers
// of an error that comes first: a client that has seen headers does not try again (gRFC A6, "When
// Retries are Valid"), however much it is asked to.
class CallRecord {
 public:
  CallRecord(const CallServices& services, Method method, grpc::CallbackServerContext& context);

  // Why the call is not to be answered, known before its request is read: its headers are wrong, or
  // its token has been taken away since gRPC's threads accepted it.
  const absl::Status& refused() const { return refused_; }
  absl::Time arrived() const { return arrived_; }
  const Caller& caller() const { return caller_; }
  Metrics& metrics() const { return services_.metrics; }
  // Admits the call and parses its request; the permit holds both from then on. Null where memory
  // is not counted.
  absl::StatusOr<std::shared_ptr<Permit>> Admit(const grpc::ByteBuffer& buffer,
                                                google::protobuf::Message& request) const;

  // Before the first message of a stream.
  void Headers();
  // Around the read of the only request: a client that takes too long to send it loses the call.
  void ReadBegins() { operation_.emplace(services_.reads, context_); }
  void ReadEnds(bool ok) {
    operation_.reset();
    if (ok) RequestCame();
  }
  // A request message has come as a whole.
  void RequestCame() { connection_.Received(); }
  // Around each write: a client that takes too long to read it loses the call. The last one ends
  // with this.
  void WriteBegins() { operation_.emplace(services_.writes, context_); }
  void WriteEnds() { operation_.reset(); }

  // The status to finish with, details and trailers included. Once, before Finish.
  grpc::Status Ended(absl::Status status, const CallFacts& facts);

 private:
  const CallServices services_;
  const Method method_;
  grpc::CallbackServerContext& context_;
  const absl::Time arrived_ = absl::Now();
  absl::Status refused_;  // before caller_: what resolves one writes both
  const Caller caller_;
  bool identified_ = false;  // the client has been told both, or will be with the next write
  Connections::Call connection_;
  std::optional<TimedOperations::Operation> operation_;  // in flight
};

// Of the call; InfiniteFuture if the client set none.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context);

// ParseRequest for what gRPC hands over, which is let go as soon as it is read. `hold` is asked for
// the memory of the bytes and of the message before it is allocated.
absl::Status ParseBuffer(const grpc::ByteBuffer& buffer, google::protobuf::Message& message,
                         absl::FunctionRef<absl::Status(int64_t)> hold);

template <typename Message>
absl::Status SerializeTo(const Message& message, grpc::ByteBuffer& buffer) {
  bool own_buffer = false;
  buffer.Clear();  // gRPC aborts on a buffer that holds something
  const grpc::Status status =
      grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own_buffer);
  return status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message());
}

}  // namespace linnet::server
