#include "server/rpc/call_record.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/base/log.h"
#include "server/identity/authentication.h"
#include "server/port/call_headers.h"
#include "server/port/status.h"
#include "server/request/request_bytes.h"
#include "server/request/request_fields.h"

namespace linnet::server {
namespace {

constexpr char kRequestId[] = "x-request-id";
constexpr char kTraceParent[] = "traceparent";
// gRPC and this server hold each header about so many times, measured (known_peers_test.py).
constexpr int64_t kHeaderCopies = 4;

std::string NewRequestId() {
  thread_local std::mt19937_64 random(std::random_device{}());
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad16), absl::Hex(random(), absl::kZeroPad16));
}

TrustedProxies::Client FindClient(const TrustedProxies& proxies,
                                  const grpc::CallbackServerContext& context) {
  const std::string address = context.peer();
  std::string subject;
  // Set by TLS when the connection was made, and never changed later.
  const auto subjects = context.auth_context()->GetPeerIdentity();
  if (!subjects.empty()) subject.assign(subjects[0].data(), subjects[0].size());
  const auto headers = [&](absl::string_view name) {
    return HeaderValues(context.client_metadata(), name);
  };
  return proxies.FindClient(headers, {.address = address, .certificate_subject = subject});
}

std::string TraceParentHeader(const grpc::CallbackServerContext& context) {
  const auto values = HeaderValues(context.client_metadata(), kTraceParent);
  return values.size() == 1 ? std::string(values.front()) : "";
}

bool IsAdminMethod(Method method) {
  return method == Method::kReload || method == Method::kGetBatch || method == Method::kSetLogLevel;
}

Caller Resolve(const CallServices& services, Method method,
               const grpc::CallbackServerContext& context, absl::Status& refused) {
  const auto headers = [&](absl::string_view name) {
    return HeaderValues(context.client_metadata(), name);
  };
  const auto tokens = services.tokens == nullptr ? nullptr : services.tokens->table();
  Caller caller;
  const TrustedProxies::Client client = FindClient(services.proxies, context);
  refused = ResolveCaller(
      headers, {.address = client.address, .certificate_subject = client.certificate_subject},
      IsAdminMethod(method) ? Right::kAdmin : Right::kInference, tokens.get(), caller);
  if (caller.request_id.empty()) caller.request_id = NewRequestId();
  caller.trace = ParseTraceParent(TraceParentHeader(context)).value_or(TraceContext());
  return caller;
}

// Returns the ids by which a client finds its call in logs and traces; `add` gets the name and the
// value of each.
template <typename Add>
void ReturnIds(const Caller& caller, const grpc::CallbackServerContext& context, Add add) {
  add(kRequestId, caller.request_id);
  if (!caller.trace.trace_id.empty()) add(kTraceParent, TraceParentHeader(context));
}

}  // namespace

std::string LabelText(const google::protobuf::Map<std::string, std::string>& labels) {
  if (!CheckLabels(labels).ok()) return "";
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  return absl::StrJoin(sorted, ",", absl::PairFormatter("="));
}

CallRecord::CallRecord(const CallServices& services, Method method,
                       grpc::CallbackServerContext& context)
    : services_(services),
      method_(method),
      context_(context),
      caller_(Resolve(services, method, context, refused_)),
      connection_(services.connections, context.peer(), /*authenticated=*/refused_.ok()) {
  services_.metrics.CallStarted(method_);
  if (refused_.ok()) {
    if (services_.admission == nullptr) return;
    absl::StatusOr<Permit> permit = AdmitOpenCall(*services_.admission, caller_, context);
    if (permit.ok()) {
      permit_ = std::make_shared<Permit>(*std::move(permit));
    } else {
      refused_ = permit.status();
    }
    return;
  }
  if (absl::IsInvalidArgument(refused_)) services_.metrics.Rejected(RejectReason::kInvalid);
}

void CallRecord::Headers() {
  if (std::exchange(ids_sent_, true)) return;
  try {
    ReturnIds(caller_, context_, [&](const char* name, const std::string& value) {
      context_.AddInitialMetadata(name, value);
    });
  } catch (...) {
    LogException("ids_not_sent");
  }
}

grpc::Status CallRecord::Ended(absl::Status status, const CallFacts& facts) {
  const absl::Duration total = absl::Now() - arrived_;
  bool client_error = false;
  grpc::Status result;
  try {
    client_error = ErrorReason(status) == GetCondition(Reason::kDeadlineTooShort).name;
    result = Describe(status, facts, total);
  } catch (...) {
    LogException("call_not_described");
    status = absl::Status(absl::StatusCode::kResourceExhausted, "");
    result = {grpc::StatusCode::RESOURCE_EXHAUSTED, ""};
  }
  services_.metrics.CallEnded(method_, status.code(), total, client_error);
  return result;
}

grpc::Status CallRecord::Describe(absl::Status status, const CallFacts& facts,
                                  absl::Duration total) {
  status = WithRequestId(caller_.request_id, WithErrorInfo(std::move(status)));
  // Anybody may send a wrong token, as often as they like.
  const bool usual = (status.ok() && !IsAdminMethod(method_)) || absl::IsUnauthenticated(status);
  const LogLevel level = absl::IsInternal(status) ? LogLevel::kError
                         : usual                  ? LogLevel::kDebug
                                                  : LogLevel::kInfo;
  // Messages of other errors may quote the request, so only an INTERNAL one is logged in full.
  std::vector<LogField> fields = {
      {"method", MethodName(method_)},
      {"code", absl::StatusCodeToString(status.code())},
      {"reason", ErrorReason(status)},
      {"contents", facts.contents},
      {"request_bytes", facts.request_bytes},
      {"seconds", absl::ToDoubleSeconds(total)},
      {"client", caller_.name()},
      {"request_id", caller_.request_id},
      {"labels", facts.labels},
      {"cause", level == LogLevel::kError ? status.message() : absl::string_view("-")}};
  AddTrace(caller_.trace, fields);
  Log(level, "call", fields);
  if (status.ok()) Headers();
  if (!std::exchange(ids_sent_, true)) {
    ReturnIds(caller_, context_, [&](const char* name, const std::string& value) {
      context_.AddTrailingMetadata(name, value);
    });
  }
  if (const absl::Duration delay = RetryDelay(status); delay != absl::InfiniteDuration()) {
    // gRPC's own retries follow this trailer. A retry after the deadline would only hide the
    // refusal: the client would wait, and then see DEADLINE_EXCEEDED of its own.
    const bool in_time = absl::Now() + delay < CallDeadline(context_);
    context_.AddTrailingMetadata("grpc-retry-pushback-ms",
                                 in_time ? absl::StrCat(absl::ToInt64Milliseconds(delay)) : "-1");
  }
  return ToGrpcStatus(status);
}

std::string ClientAddress(const TrustedProxies& proxies,
                          const grpc::CallbackServerContext& context) {
  return FindClient(proxies, context).address;
}

absl::StatusOr<Permit> AdmitOpenCall(Admission& admission, const Caller& caller,
                                     const grpc::CallbackServerContext& context) {
  return admission.Enter(caller, kHeaderCopies * HeaderBytes(context.client_metadata()));
}

absl::Time CallDeadline(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

absl::StatusOr<std::shared_ptr<Permit>> CallRecord::Admit(
    const grpc::ByteBuffer& buffer, google::protobuf::Message& request) const {
  const std::shared_ptr<Permit>& held = permit_;
  const int64_t before = held == nullptr ? 0 : held->bytes();
  int64_t parsed = 0;  // the last value of `hold`
  const absl::Status status = ParseBuffer(buffer, request, [&](int64_t bytes) {
    parsed = bytes;
    return held == nullptr ? absl::OkStatus() : held->Hold(bytes);
  });
  if (!status.ok()) {
    // Admission counts its own rejections.
    if (!absl::IsResourceExhausted(status)) services_.metrics.Rejected(RejectReason::kInvalid);
    return status;
  }
  if (held != nullptr) held->SetBytes(before + parsed);
  return held;
}

absl::Status ParseBuffer(const grpc::ByteBuffer& buffer, google::protobuf::Message& message,
                         absl::FunctionRef<absl::Status(int64_t)> hold) {
  // gRPC keeps the buffer as long as the call lives but never reads it again.
  auto& read = const_cast<grpc::ByteBuffer&>(buffer);
  // The buffer and a contiguous copy.
  if (absl::Status status = hold(2 * static_cast<int64_t>(buffer.Length())); !status.ok()) {
    read.Clear();
    return status;
  }
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return absl::InternalError("gRPC cannot read its own buffer");
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  slices.clear();
  read.Clear();
  const int64_t parsed = ParsedBytes(bytes, *message.GetDescriptor());
  RETURN_IF_ERROR(hold(parsed));
  return ParseRequest(bytes, message);
}

}  // namespace linnet::server
