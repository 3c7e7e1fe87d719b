#pragma once

#include <grpcpp/grpcpp.h>

#include "linnet/v1/text_service.grpc.pb.h"
#include "server/metrics.h"
#include "server/text_call.h"

namespace linnet::server {

// linnet.v1.TextService on gRPC's callback API: a thin shell around TextCalls. gRPC's threads
// parse, check and hand over; they never wait.
//
// Translate and Summarize take raw bytes, because protobuf refuses text that is not UTF-8 before a
// handler could say which field it was (gRPC would answer INTERNAL without a message).
class TextService : public linnet::v1::TextService::WithRawCallbackMethod_Translate<
                        linnet::v1::TextService::WithRawCallbackMethod_Summarize<
                            linnet::v1::TextService::WithCallbackMethod_ListModels<
                                linnet::v1::TextService::Service>>> {
 public:
  // Both outlive the service.
  TextService(TextCalls& calls, Metrics& metrics) : calls_(calls), metrics_(metrics) {}

  grpc::ServerUnaryReactor* Translate(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Summarize(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const linnet::v1::ListModelsRequest* request,
                                       linnet::v1::ListModelsResponse* response) override;

 private:
  TextCalls& calls_;
  Metrics& metrics_;
};

}  // namespace linnet::server
