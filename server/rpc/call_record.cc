#include "server/rpc/call_record.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/log.h"
#include "server/rpc/status.h"
#include "server/text/request_bytes.h"

namespace linnet::server {
namespace {

constexpr char kRequestId[] = "x-request-id";

std::string NewRequestId() {
  thread_local std::mt19937_64 random(std::random_device{}());
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad16), absl::Hex(random(), absl::kZeroPad16));
}

std::string RequestIdOf(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  if (const auto found = metadata.find(kRequestId); found != metadata.end()) {
    const std::string id(found->second.data(), found->second.size());
    const bool visible =
        std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 127; });
    if (!id.empty() && id.size() <= 128 && visible) return id;
  }
  return NewRequestId();
}

}  // namespace

std::string LabelText(const google::protobuf::Map<std::string, std::string>& labels) {
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  return absl::StrJoin(sorted, ",", absl::PairFormatter("="));
}

CallRecord::CallRecord(Metrics& metrics, Method method, grpc::CallbackServerContext& context)
    : metrics_(metrics), method_(method), context_(context), request_id_(RequestIdOf(context)) {
  metrics_.CallStarted(method_);
  context_.AddInitialMetadata(kRequestId, request_id_);
}

grpc::Status CallRecord::Ended(absl::Status status, const CallFacts& facts) {
  status = WithRequestId(request_id_, WithErrorInfo(std::move(status)));
  const absl::Duration total = absl::Now() - arrived_;
  metrics_.CallEnded(method_, status.code(), total);
  const LogLevel level = status.ok()                ? LogLevel::kDebug
                         : absl::IsInternal(status) ? LogLevel::kError
                                                    : LogLevel::kInfo;
  // Messages of other errors may quote the request, so that only an INTERNAL one is logged whole.
  Log(level, "call",
      {{"method", MethodName(method_)},
       {"code", absl::StatusCodeToString(status.code())},
       {"reason", ErrorReason(status)},
       {"contents", facts.contents},
       {"request_bytes", facts.request_bytes},
       {"seconds", absl::ToDoubleSeconds(total)},
       {"request_id", request_id_},
       {"labels", facts.labels},
       {"cause", level == LogLevel::kError ? status.message() : absl::string_view("-")}});
  if (const absl::Duration delay = RetryDelay(status); delay != absl::InfiniteDuration()) {
    // gRPC's own retries go by this trailer.
    context_.AddTrailingMetadata("grpc-retry-pushback-ms",
                                 absl::StrCat(absl::ToInt64Milliseconds(delay)));
  }
  return ToGrpcStatus(status);
}

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

absl::Status ParseBuffer(const grpc::ByteBuffer& buffer, google::protobuf::Message& message) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return absl::InternalError("the request could not be read");
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return ParseRequest(bytes, message);
}

}  // namespace linnet::server
