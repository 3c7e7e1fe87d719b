#include "server/rpc/text_service.h"

#include <utility>

#include "server/rpc/document_call.h"
#include "server/rpc/stream_call.h"
#include "server/rpc/unary_call.h"
#include "server/text/document_stream.h"

namespace linnet::server {

// The methods, each with its messages; what they do stands in TextCalls.
namespace v1 = linnet::v1;

grpc::ServerUnaryReactor* TextService::Translate(Context* context, const Bytes* request,
                                                 Bytes* response) {
  return new UnaryCall<v1::TranslateRequest, v1::TranslateResponse>(
      calls_,
      [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
         TextCalls::Done done) { calls.Translate(request, response, call, std::move(done)); },
      house_, Method::kTranslate, *context, *request, *response);
}

grpc::ServerUnaryReactor* TextService::Summarize(Context* context, const Bytes* request,
                                                 Bytes* response) {
  return new UnaryCall<v1::SummarizeRequest, v1::SummarizeResponse>(
      calls_,
      [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
         TextCalls::Done done) { calls.Summarize(request, response, call, std::move(done)); },
      house_, Method::kSummarize, *context, *request, *response);
}

grpc::ServerUnaryReactor* TextService::Score(Context* context, const Bytes* request,
                                             Bytes* response) {
  return new UnaryCall<v1::ScoreRequest, v1::ScoreResponse>(
      calls_,
      [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
         TextCalls::Done done) { calls.Score(request, response, call, std::move(done)); },
      house_, Method::kScore, *context, *request, *response);
}

grpc::ServerUnaryReactor* TextService::DetectLanguage(Context* context, const Bytes* request,
                                                      Bytes* response) {
  return new UnaryCall<v1::DetectLanguageRequest, v1::DetectLanguageResponse>(
      calls_,
      [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
         TextCalls::Done done) { calls.DetectLanguage(request, response, call, std::move(done)); },
      house_, Method::kDetectLanguage, *context, *request, *response);
}

grpc::ServerUnaryReactor* TextService::ListModels(Context* context, const Bytes* request,
                                                  Bytes* response) {
  return new UnaryCall<v1::ListModelsRequest, v1::ListModelsResponse>(
      calls_,
      [](TextCalls& calls, const auto&, auto& response, const CallContext&, TextCalls::Done done) {
        calls.ListModels(response);
        done(absl::OkStatus());
      },
      house_, Method::kListModels, *context, *request, *response);
}

grpc::ServerUnaryReactor* TextService::GetModel(Context* context, const Bytes* request,
                                                Bytes* response) {
  return new UnaryCall<v1::GetModelRequest, v1::GetModelResponse>(
      calls_,
      [](TextCalls& calls, const auto& request, auto& response, const CallContext&,
         TextCalls::Done done) { done(calls.GetModel(request, response)); },
      house_, Method::kGetModel, *context, *request, *response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TextService::StreamTranslate(Context* context,
                                                                         const Bytes* request) {
  return new StreamCall<v1::StreamTranslateRequest, v1::TranslateRequest, v1::TranslateResponse,
                        v1::StreamTranslateResponse>(calls_, &TextCalls::StreamTranslate, house_,
                                                     Method::kStreamTranslate, *context, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TextService::StreamSummarize(Context* context,
                                                                         const Bytes* request) {
  return new StreamCall<v1::StreamSummarizeRequest, v1::SummarizeRequest, v1::SummarizeResponse,
                        v1::StreamSummarizeResponse>(calls_, &TextCalls::StreamSummarize, house_,
                                                     Method::kStreamSummarize, *context, *request);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* TextService::TranslateDocument(
    Context* context) {
  return DocumentCall<TranslateDocumentTypes>::Begin(calls_, house_, Method::kTranslateDocument,
                                                     *context);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* TextService::SummarizeDocument(
    Context* context) {
  return DocumentCall<SummarizeDocumentTypes>::Begin(calls_, house_, Method::kSummarizeDocument,
                                                     *context);
}

}  // namespace linnet::server
