// An exception in the code of a method ends that call alone.
#include "server/rpc/unary_call.h"

#include <memory>
#include <new>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "gmock/gmock.h"
#include "linnet/v1/admin_service.grpc.pb.h"
#include "server/identity/trusted_proxies.h"
#include "server/metrics/metrics.h"
#include "server/port/port.h"
#include "server/rpc/raw_methods.h"
#include "server/rpc/timed_operations.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using linnet::v1::SetLogLevelRequest;
using linnet::v1::SetLogLevelResponse;

struct Throwing {
  using Done = absl::AnyInvocable<void(absl::Status)>;
};

class ThrowingService : public RawMethods<linnet::v1::AdminService> {
 public:
  explicit ThrowingService(const CallServices& services) {
    Serve("SetLogLevel", [this, services](grpc::CallbackServerContext* context) {
      return new UnaryCall<SetLogLevelRequest, SetLogLevelResponse, Throwing>(
          throwing_,
          [](Throwing&, const SetLogLevelRequest&, SetLogLevelResponse&, const CallContext&,
             Throwing::Done) { throw std::bad_alloc(); },
          services, Method::kSetLogLevel, *context);
    });
  }

 private:
  Throwing throwing_;
};

TEST(UnaryCallTest, ExceptionOfAMethodEndsItsCall) {
  Metrics metrics;
  TimedOperations reads(absl::InfiniteDuration(), "", ""), writes(absl::InfiniteDuration(), "", "");
  Connections connections({});
  const auto proxies = TrustedProxies::Parse("");
  ASSERT_THAT(proxies, IsOk());
  ThrowingService service({metrics, reads, writes, connections, *proxies});
  auto port = Port::Open({.address = "127.0.0.1:0",
                          .flag = "--listen",
                          .credentials = grpc::InsecureServerCredentials(),
                          .services = {&service},
                          .connections = &connections},
                         {});
  ASSERT_THAT(port, IsOk());
  const auto stub = linnet::v1::AdminService::NewStub(
      grpc::CreateChannel((*port)->address(), grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    SetLogLevelResponse response;
    EXPECT_EQ(stub->SetLogLevel(&context, {}, &response).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
}

}  // namespace
}  // namespace linnet::server
