// A TextService that answers Translate at once with the text itself: what a load generator can do
// is measured against it (load_generator.py). With a stall it stands still for all callers at
// times, as a server does that collects garbage or is swapped out.
//
//   bench_echo_server [STALL_MS EVERY_MS]
//
// Prints "ready grpc=127.0.0.1:PORT" and ends with its standard input.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "grpcpp/grpcpp.h"
#include "linnet/v1/text_service.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

class Echo final : public linnet::v1::TextService::CallbackService {
 public:
  Echo(Milliseconds stall, Milliseconds every) : stall_(stall), every_(every) {}

  grpc::ServerUnaryReactor* Translate(grpc::CallbackServerContext* context,
                                      const linnet::v1::TranslateRequest* request,
                                      linnet::v1::TranslateResponse* response) override {
    if (stall_ > Milliseconds::zero()) MaybeStall();
    for (const std::string& text : request->contents()) {
      linnet::v1::Translation& translation = *response->add_translations();
      translation.set_text(text);
      translation.mutable_usage()->set_source_tokens(1);
      translation.mutable_usage()->set_target_tokens(1);
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  // Blocks gRPC's threads, which a server must not do; here it is the point.
  void MaybeStall() {
    std::lock_guard lock(mu_);
    if (Clock::now() - last_ < every_) return;
    std::this_thread::sleep_for(stall_);
    last_ = Clock::now();
  }

  const Milliseconds stall_;
  const Milliseconds every_;
  std::mutex mu_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace

int main(int argc, char** argv) {
  const bool stalls = argc == 3;
  Echo echo(Milliseconds(stalls ? std::atoi(argv[1]) : 0),
            Milliseconds(stalls ? std::atoi(argv[2]) : 0));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "ready grpc=127.0.0.1:" << port << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
