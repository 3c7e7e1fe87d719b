#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <functional>
#include <string>
#include <utility>

namespace linnet::server {

using CallReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// A service whose methods are all begun when the headers of a call have come, and read and write
// raw bytes, whatever their kind. gRPC by itself begins a method with one request only when all of
// that has come: nobody would then see a call whose request never ends. And protobuf would refuse
// text that is not UTF-8 before a handler could say which field it was, and drop what it does not
// know without a word. `Api` is the generated class of the service.
template <typename Api>
class RawMethods : public Api::Service {
 protected:
  // `begin` makes the reactor of a call, which deletes itself when gRPC is done with it.
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
