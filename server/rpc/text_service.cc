#include "server/rpc/text_service.h"

#include <utility>

#include "server/rpc/document_call.h"
#include "server/rpc/stream_call.h"
#include "server/rpc/unary_call.h"
#include "server/text/document_stream.h"

namespace linnet::server {

// The methods, each with its messages; what they do stands in TextCalls.
namespace v1 = linnet::v1;
using Context = grpc::CallbackServerContext;

TextService::TextService(TextCalls& calls, const CallHouse& house) {
  Serve("Translate", [&calls, house](Context* context) {
    return new UnaryCall<v1::TranslateRequest, v1::TranslateResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) { calls.Translate(request, response, call, std::move(done)); },
        house, Method::kTranslate, *context);
  });
  Serve("Summarize", [&calls, house](Context* context) {
    return new UnaryCall<v1::SummarizeRequest, v1::SummarizeResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) { calls.Summarize(request, response, call, std::move(done)); },
        house, Method::kSummarize, *context);
  });
  Serve("Score", [&calls, house](Context* context) {
    return new UnaryCall<v1::ScoreRequest, v1::ScoreResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) { calls.Score(request, response, call, std::move(done)); },
        house, Method::kScore, *context);
  });
  Serve("DetectLanguage", [&calls, house](Context* context) {
    return new UnaryCall<v1::DetectLanguageRequest, v1::DetectLanguageResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) {
          calls.DetectLanguage(request, response, call, std::move(done));
        },
        house, Method::kDetectLanguage, *context);
  });
  Serve("ListModels", [&calls, house](Context* context) {
    return new UnaryCall<v1::ListModelsRequest, v1::ListModelsResponse>(
        calls,
        [](TextCalls& calls, const auto&, auto& response, const CallContext&,
           TextCalls::Done done) {
          calls.ListModels(response);
          done(absl::OkStatus());
        },
        house, Method::kListModels, *context);
  });
  Serve("GetModel", [&calls, house](Context* context) {
    return new UnaryCall<v1::GetModelRequest, v1::GetModelResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext&,
           TextCalls::Done done) { done(calls.GetModel(request, response)); },
        house, Method::kGetModel, *context);
  });
  Serve("StreamTranslate", [&calls, house](Context* context) {
    return new StreamCall<v1::StreamTranslateRequest, v1::TranslateRequest, v1::TranslateResponse,
                          v1::StreamTranslateResponse>(calls, &TextCalls::StreamTranslate, house,
                                                       Method::kStreamTranslate, *context);
  });
  Serve("StreamSummarize", [&calls, house](Context* context) {
    return new StreamCall<v1::StreamSummarizeRequest, v1::SummarizeRequest, v1::SummarizeResponse,
                          v1::StreamSummarizeResponse>(calls, &TextCalls::StreamSummarize, house,
                                                       Method::kStreamSummarize, *context);
  });
  Serve("TranslateDocument", [&calls, house](Context* context) {
    return DocumentCall<TranslateDocumentTypes>::Begin(calls, house, Method::kTranslateDocument,
                                                       *context);
  });
  Serve("SummarizeDocument", [&calls, house](Context* context) {
    return DocumentCall<SummarizeDocumentTypes>::Begin(calls, house, Method::kSummarizeDocument,
                                                       *context);
  });
}

}  // namespace linnet::server
