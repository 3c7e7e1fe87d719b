#include "server/rpc/text_service.h"

#include <grpcpp/support/proto_buffer_writer.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/log.h"
#include "server/rpc/status.h"

namespace linnet::server {
namespace {

// Counts and logs one call: its start, and its end with the code it was answered with.
class CallRecord {
 public:
  CallRecord(Metrics& metrics, Method method) : metrics_(metrics), method_(method) {
    metrics_.CallStarted(method_);
  }

  absl::Time arrived() const { return arrived_; }

  void Ended(const absl::Status& status, int contents, int64_t request_bytes) {
    const absl::Duration total = absl::Now() - arrived_;
    metrics_.CallEnded(method_, status.code(), total);
    const LogLevel level = status.ok()                                    ? LogLevel::kDebug
                           : status.code() == absl::StatusCode::kInternal ? LogLevel::kError
                                                                          : LogLevel::kInfo;
    // Messages of other errors may quote the request, so that only an INTERNAL one is logged whole.
    Log(level, "call",
        {{"method", MethodName(method_)},
         {"code", absl::StatusCodeToString(status.code())},
         {"reason", ErrorReason(status)},
         {"contents", contents},
         {"request_bytes", request_bytes},
         {"seconds", absl::ToDoubleSeconds(total)},
         {"cause", level == LogLevel::kError ? status.message() : absl::string_view("-")}});
  }

 private:
  Metrics& metrics_;
  const Method method_;
  const absl::Time arrived_ = absl::Now();
};

absl::Time Deadline(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

absl::Status Parse(const grpc::ByteBuffer& buffer, google::protobuf::Message& message) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return absl::InternalError("the request could not be read");
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return ParseRequest(bytes, message);
}

// One call of Translate or Summarize. It deletes itself when gRPC is done with it, which may be
// before Finish returns: so nothing is touched after Finish.
template <typename Request, typename Response>
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  using Start = void (TextCalls::*)(const Request&, Response&, const CallContext&, TextCalls::Done);

  UnaryCall(TextCalls& calls, Start start, Metrics& metrics, Method method,
            grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
            grpc::ByteBuffer& response)
      : record_(metrics, method),
        context_(context),
        request_bytes_(static_cast<int64_t>(request.Length())),
        response_bytes_(response),
        cancelled_(std::make_shared<std::atomic<bool>>(false)) {
    if (absl::Status status = Parse(request, request_); !status.ok()) {
      metrics.Rejected(RejectReason::kInvalid);
      End(std::move(status));
      return;
    }
    (calls.*start)(
        request_, response_,
        {.arrived = record_.arrived(), .deadline = Deadline(context), .cancelled = cancelled_},
        [this](absl::Status status) { End(std::move(status)); });
  }

  // May run beside everything else, also before the constructor has returned.
  void OnCancel() override { cancelled_->store(true, std::memory_order_relaxed); }
  void OnDone() override { delete this; }

 private:
  void End(absl::Status status) {
    if (status.ok()) {
      bool own_buffer = false;
      const grpc::Status serialised =
          grpc::SerializationTraits<Response>::Serialize(response_, &response_bytes_, &own_buffer);
      if (!serialised.ok()) status = WithErrorInfo(absl::InternalError(serialised.error_message()));
    } else if (const absl::Duration delay = RetryDelay(status); delay != absl::InfiniteDuration()) {
      // gRPC's own retries go by this trailer.
      context_.AddTrailingMetadata("grpc-retry-pushback-ms",
                                   absl::StrCat(absl::ToInt64Milliseconds(delay)));
    }
    record_.Ended(status, request_.contents_size(), request_bytes_);
    Finish(ToGrpcStatus(status));
  }

  CallRecord record_;
  grpc::CallbackServerContext& context_;
  const int64_t request_bytes_;
  Request request_;
  Response response_;
  grpc::ByteBuffer& response_bytes_;
  std::shared_ptr<std::atomic<bool>> cancelled_;
};

}  // namespace

grpc::ServerUnaryReactor* TextService::Translate(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  return new UnaryCall<linnet::v1::TranslateRequest, linnet::v1::TranslateResponse>(
      calls_, &TextCalls::Translate, metrics_, Method::kTranslate, *context, *request, *response);
}

grpc::ServerUnaryReactor* TextService::Summarize(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  return new UnaryCall<linnet::v1::SummarizeRequest, linnet::v1::SummarizeResponse>(
      calls_, &TextCalls::Summarize, metrics_, Method::kSummarize, *context, *request, *response);
}

grpc::ServerUnaryReactor* TextService::ListModels(grpc::CallbackServerContext* context,
                                                  const linnet::v1::ListModelsRequest* request,
                                                  linnet::v1::ListModelsResponse* response) {
  CallRecord record(metrics_, Method::kListModels);
  calls_.ListModels(*response);
  record.Ended(absl::OkStatus(), 0, static_cast<int64_t>(request->ByteSizeLong()));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace linnet::server
