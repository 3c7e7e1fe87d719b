#include "server/rpc/text_service.h"

#include <utility>

#include "server/rpc/document_call.h"
#include "server/rpc/stream_call.h"
#include "server/rpc/unary_call.h"
#include "server/text/document_stream.h"

namespace linnet::server {

// Binds each method to its messages; TextCalls implements them.
namespace v1 = linnet::v1;
using Context = grpc::CallbackServerContext;

TextService::TextService(TextCalls& calls, const CallServices& services) {
  Serve("Translate", [&calls, services](Context* context) {
    return new UnaryCall<v1::TranslateRequest, v1::TranslateResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) { calls.Translate(request, response, call, std::move(done)); },
        services, Method::kTranslate, *context);
  });
  Serve("Summarize", [&calls, services](Context* context) {
    return new UnaryCall<v1::SummarizeRequest, v1::SummarizeResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) { calls.Summarize(request, response, call, std::move(done)); },
        services, Method::kSummarize, *context);
  });
  Serve("Score", [&calls, services](Context* context) {
    return new UnaryCall<v1::ScoreRequest, v1::ScoreResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) { calls.Score(request, response, call, std::move(done)); },
        services, Method::kScore, *context);
  });
  Serve("DetectLanguage", [&calls, services](Context* context) {
    return new UnaryCall<v1::DetectLanguageRequest, v1::DetectLanguageResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext& call,
           TextCalls::Done done) {
          calls.DetectLanguage(request, response, call, std::move(done));
        },
        services, Method::kDetectLanguage, *context);
  });
  Serve("ListModels", [&calls, services](Context* context) {
    return new UnaryCall<v1::ListModelsRequest, v1::ListModelsResponse>(
        calls,
        [](TextCalls& calls, const auto&, auto& response, const CallContext&,
           TextCalls::Done done) {
          calls.ListModels(response);
          done(absl::OkStatus());
        },
        services, Method::kListModels, *context);
  });
  Serve("GetModel", [&calls, services](Context* context) {
    return new UnaryCall<v1::GetModelRequest, v1::GetModelResponse>(
        calls,
        [](TextCalls& calls, const auto& request, auto& response, const CallContext&,
           TextCalls::Done done) { done(calls.GetModel(request, response)); },
        services, Method::kGetModel, *context);
  });
  Serve("StreamTranslate", [&calls, services](Context* context) {
    return new StreamCall<v1::StreamTranslateRequest, v1::TranslateRequest, v1::TranslateResponse,
                          v1::StreamTranslateResponse>(calls, &TextCalls::StreamTranslate, services,
                                                       Method::kStreamTranslate, *context);
  });
  Serve("StreamSummarize", [&calls, services](Context* context) {
    return new StreamCall<v1::StreamSummarizeRequest, v1::SummarizeRequest, v1::SummarizeResponse,
                          v1::StreamSummarizeResponse>(calls, &TextCalls::StreamSummarize, services,
                                                       Method::kStreamSummarize, *context);
  });
  Serve("TranslateDocument", [&calls, services](Context* context) {
    return DocumentCall<TranslateDocumentTypes>::Begin(calls, services, Method::kTranslateDocument,
                                                       *context);
  });
  Serve("SummarizeDocument", [&calls, services](Context* context) {
    return DocumentCall<SummarizeDocumentTypes>::Begin(calls, services, Method::kSummarizeDocument,
                                                       *context);
  });
}

}  // namespace linnet::server
