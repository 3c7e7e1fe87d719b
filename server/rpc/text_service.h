#pragma once

#include <grpcpp/grpcpp.h>

#include "linnet/v1/text_service.grpc.pb.h"
#include "server/rpc/call_record.h"
#include "server/text/text_call.h"

namespace linnet::server {

// Every method takes raw bytes, because protobuf refuses text that is not UTF-8 before a handler
// could say which field it was (gRPC would answer INTERNAL without a message), and drops what it
// does not know without a word.
template <typename Base>
using RawUnaryMethods = linnet::v1::TextService::WithRawCallbackMethod_Translate<
    linnet::v1::TextService::WithRawCallbackMethod_Summarize<
        linnet::v1::TextService::WithRawCallbackMethod_Score<
            linnet::v1::TextService::WithRawCallbackMethod_DetectLanguage<
                linnet::v1::TextService::WithRawCallbackMethod_ListModels<
                    linnet::v1::TextService::WithRawCallbackMethod_GetModel<Base>>>>>>;
template <typename Base>
using RawStreamMethods = linnet::v1::TextService::WithRawCallbackMethod_StreamTranslate<
    linnet::v1::TextService::WithRawCallbackMethod_StreamSummarize<
        linnet::v1::TextService::WithRawCallbackMethod_TranslateDocument<
            linnet::v1::TextService::WithRawCallbackMethod_SummarizeDocument<Base>>>>;

// linnet.v1.TextService on gRPC's callback API: a thin shell around TextCalls. gRPC's threads
// parse, check and hand over; they never wait.
class TextService : public RawUnaryMethods<RawStreamMethods<linnet::v1::TextService::Service>> {
 public:
  // Both outlive the service.
  TextService(TextCalls& calls, const CallHouse& house) : calls_(calls), house_(house) {}

  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;

  grpc::ServerUnaryReactor* Translate(Context* context, const Bytes* request,
                                      Bytes* response) override;
  grpc::ServerUnaryReactor* Summarize(Context* context, const Bytes* request,
                                      Bytes* response) override;
  grpc::ServerUnaryReactor* Score(Context* context, const Bytes* request, Bytes* response) override;
  grpc::ServerUnaryReactor* DetectLanguage(Context* context, const Bytes* request,
                                           Bytes* response) override;
  grpc::ServerUnaryReactor* ListModels(Context* context, const Bytes* request,
                                       Bytes* response) override;
  grpc::ServerUnaryReactor* GetModel(Context* context, const Bytes* request,
                                     Bytes* response) override;
  grpc::ServerWriteReactor<Bytes>* StreamTranslate(Context* context, const Bytes* request) override;
  grpc::ServerWriteReactor<Bytes>* StreamSummarize(Context* context, const Bytes* request) override;
  grpc::ServerBidiReactor<Bytes, Bytes>* TranslateDocument(Context* context) override;
  grpc::ServerBidiReactor<Bytes, Bytes>* SummarizeDocument(Context* context) override;

 private:
  TextCalls& calls_;
  const CallHouse house_;
};

}  // namespace linnet::server
