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
#include "server/admission/admission.h"
#include "server/base/caller.h"
#include "server/identity/token_file.h"
#include "server/identity/trusted_proxies.h"
#include "server/metrics/metrics.h"
#include "server/port/connections.h"
#include "server/rpc/timed_operations.h"

namespace linnet::server {

// Facts about a call for the log: numbers and labels, never text.
struct CallFacts {
  int64_t contents = 0;
  int64_t request_bytes = 0;
  std::string labels;
};

// Formats labels as "team=search,run=7", sorted by key. Returns "" for invalid labels, which may
// contain anything.
std::string LabelText(const google::protobuf::Map<std::string, std::string>& labels);

// Dependencies of every call of a service; they outlive the calls.
struct CallServices {
  Metrics& metrics;
  TimedOperations& reads;
  TimedOperations& writes;
  Connections& connections;  // of the service's port
  const TrustedProxies& proxies;
  const TokenFile* tokens = nullptr;  // null if no token is required
  Admission* admission = nullptr;     // limits the memory of its calls; null: not counted
};

// Counts and logs the start and the end of one call, and identifies its caller (ResolveCaller). Its
// request id is the client's `x-request-id` or a new one; its trace context is that of a valid
// `traceparent`. The response headers return both, or the trailers of an error that comes first: a
// client that has seen headers does not retry (gRFC A6, "When Retries are Valid"), even if the
// error allows it.
class CallRecord {
 public:
  CallRecord(const CallServices& services, Method method, grpc::CallbackServerContext& context);

  // Not OK if the call is refused before its request is read: its headers are wrong, its token was
  // removed since gRPC's threads accepted it, or there is no memory for another open call.
  const absl::Status& refused() const { return refused_; }
  absl::Time arrived() const { return arrived_; }
  const Caller& caller() const { return caller_; }
  Metrics& metrics() const { return services_.metrics; }
  // Parses the request; the returned permit accounts for it and the call. Null if memory is not
  // counted.
  absl::StatusOr<std::shared_ptr<Permit>> Admit(const grpc::ByteBuffer& buffer,
                                                google::protobuf::Message& request) const;

  // Sends the headers, without the ids if there is no memory for them. Call it before the first
  // message of a stream.
  void Headers();
  // Mark the read of the only or first message: the call of a client that is too slow to send it is
  // cancelled.
  void ReadBegins() { read_.emplace(services_.reads, context_); }
  void ReadEnds(bool ok) {
    read_.reset();
    if (ok) RequestReceived();
  }
  // A complete request message has arrived.
  void RequestReceived() { connection_.Received(); }
  // Mark each write: the call of a client that is too slow to read is cancelled. The last write
  // ends with this object.
  void WriteBegins() { write_.emplace(services_.writes, context_); }
  void WriteEnds() { write_.reset(); }

  // Returns the status to finish with, including details and trailers: RESOURCE_EXHAUSTED if there
  // is no memory for them. Call it once, before Finish. Does not throw.
  grpc::Status Ended(absl::Status status, const CallFacts& facts);

 private:
  grpc::Status Describe(absl::Status status, const CallFacts& facts, absl::Duration total);

  const CallServices services_;
  const Method method_;
  grpc::CallbackServerContext& context_;
  const absl::Time arrived_ = absl::Now();
  absl::Status refused_;  // before caller_, whose initialiser writes both
  const Caller caller_;
  bool ids_sent_ = false;  // the ids were sent, or will be with the next write
  Connections::Call connection_;
  std::shared_ptr<Permit> permit_;  // for the open call, from its headers on
  std::optional<TimedOperations::Operation> read_, write_;  // in flight
};

// The address of the client of a call, also behind a trusted proxy, as gRPC writes it.
std::string ClientAddress(const TrustedProxies& proxies,
                          const grpc::CallbackServerContext& context);

// Admits an open call: with what it and gRPC hold, its headers included.
absl::StatusOr<Permit> AdmitOpenCall(Admission& admission, const Caller& caller,
                                     const grpc::CallbackServerContext& context);

// Returns the deadline of the call; InfiniteFuture if the client set none.
absl::Time CallDeadline(const grpc::CallbackServerContext& context);

// ParseRequest for a buffer of gRPC, which is released as soon as it is parsed. `hold` is called
// with the memory of the bytes and of the message before it is allocated.
absl::Status ParseBuffer(const grpc::ByteBuffer& buffer, google::protobuf::Message& message,
                         absl::FunctionRef<absl::Status(int64_t)> hold);

template <typename Message>
absl::Status SerializeTo(const Message& message, grpc::ByteBuffer& buffer) {
  bool own_buffer = false;
  buffer.Clear();  // gRPC aborts if the buffer is not empty
  const grpc::Status status =
      grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own_buffer);
  return status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message());
}

}  // namespace linnet::server
