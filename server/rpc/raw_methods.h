#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <functional>
#include <string>
#include <utility>

namespace linnet::server {

using CallReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// A service whose methods all start when the headers of a call have arrived, and read and write raw
// bytes, whether unary or streaming. gRPC itself starts a unary method only when the complete
// request has arrived, so a call whose request never ends would be invisible. And protobuf would
// reject text that is not UTF-8 before a handler could name the field, and would silently drop
// unknown fields. `Api` is the generated class of the service.
template <typename Api>
class RawMethods : public Api::Service {
 protected:
  // `begin` creates the reactor of a call, which deletes itself when gRPC is done with it.
  void Serve(const std::string& method,
             std::function<CallReactor*(grpc::CallbackServerContext*)> begin) {
    const int index = google::protobuf::DescriptorPool::generated_pool()
                          ->FindServiceByName(Api::service_full_name())
                          ->FindMethodByName(method)
                          ->index();
    this->MarkMethodStreamed(index, nullptr);  // a request is a stream of one message
    this->MarkMethodRawCallback(
        index, new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                   std::move(begin)));
  }
};

}  // namespace linnet::server
