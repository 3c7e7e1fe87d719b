#include "server/rpc/health_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/identity/peer_address.h"
#include "server/port/status.h"
#include "server/rpc/call_record.h"

namespace linnet::server {
namespace {

// No model has a longer name.
constexpr int64_t kMaxServiceName = 256;

}  // namespace

// The common base of Check and Watch: reads the request.
class HealthService::HealthCall : public CallReactor {
 public:
  HealthCall(HealthService& service, TimedOperations& reads, Connections& connections,
             Admission& admission, const TrustedProxies& proxies,
             const grpc::CallbackServerContext& context)
      : service_(service),
        connection_(connections, context.peer(), /*authenticated=*/false),
        permit_(AdmitOpenCall(
            admission,
            {.client = kHealthClient, .id = NetworkName(ClientAddress(proxies, context))},
            context)) {
    if (!permit_.ok()) {
      Finish(ToGrpcStatus(permit_.status()));
      return;
    }
    reading_.emplace(reads, context);
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    reading_.reset();
    // gRPC would catch what nobody has caught here, and the call would never end. Once an answer is
    // in flight nothing throws.
    try {
      Answer(ok);
    } catch (...) {
      LogException("health_not_answered");
      Finish(ToGrpcStatus(ErrorOfException()));
    }
  }

 protected:
  virtual void Begin(const std::string& name) = 0;
  const grpc::ByteBuffer* SerializedStatus(Response::ServingStatus status) {
    Response response;
    response.set_status(status);
    SerializeTo(response, message_).IgnoreError();  // two bytes
    return &message_;
  }

  HealthService& service_;

 private:
  void Answer(bool ok) {
    Request request;
    if (!ok || !grpc::SerializationTraits<Request>::Deserialize(&message_, &request).ok()) {
      Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                          "the request is not a HealthCheckRequest"));
      return;
    }
    connection_.Received();
    if (std::ssize(request.service()) > kMaxServiceName) {
      Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                          absl::StrCat("service: has ", request.service().size(),
                                       " bytes, at most ", kMaxServiceName)));
      return;
    }
    Begin(request.service());
  }

  Connections::Call connection_;
  const absl::StatusOr<Permit> permit_;  // while the call is open
  std::optional<TimedOperations::Operation> reading_;
  grpc::ByteBuffer message_;  // of the request, then of the write in flight
};

class HealthService::CheckCall final : public HealthCall {
 public:
  CheckCall(HealthService& service, TimedOperations& reads, Connections& connections,
            Admission& admission, const TrustedProxies& proxies,
            grpc::CallbackServerContext& context)
      : HealthCall(service, reads, connections, admission, proxies, context), context_(context) {}
  void OnDone() override { delete this; }

 private:
  void Begin(const std::string& name) override {
    Response::ServingStatus status;
    {
      MutexLock lock(service_.mu_);
      status = service_.ServiceStatus(name);
      if (name.empty() && !service_.not_serving_.empty())
        context_.AddTrailingMetadata("linnet-not-serving", service_.not_serving_);
    }
    if (status == Response::SERVICE_UNKNOWN) {
      Finish(grpc::Status(grpc::StatusCode::NOT_FOUND,
                          "no health status is registered under this name"));
    } else {
      StartWriteAndFinish(SerializedStatus(status), {}, grpc::Status::OK);
    }
  }

  grpc::CallbackServerContext& context_;
};

// One watch of a service: sends its state at once and whenever it changes, one write at a time. The
// service keeps it until gRPC is done with it.
class HealthService::WatchCall final : public HealthCall,
                                       public std::enable_shared_from_this<WatchCall> {
 public:
  using HealthCall::HealthCall;

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(service_.mu_);
      writing_ = false;
      gone_ |= !ok;
    }
    Step();
  }
  void OnCancel() override {
    {
      MutexLock lock(service_.mu_);
      gone_ = true;
    }
    Step();
  }
  void OnDone() override {
    const auto last = shared_from_this();
    MutexLock lock(service_.mu_);
    service_.watches_.erase(last);
  }

  // Writes a changed state, or finishes. Decides under the lock, acts after it.
  void Step() {
    bool write = false;
    Response::ServingStatus status;
    {
      MutexLock lock(service_.mu_);
      if (!started_ || writing_ || finished_) return;
      status = service_.ServiceStatus(name_);
      if (!gone_ && status != sent_) {
        sent_ = status;
        write = writing_ = true;
      } else if (gone_ || service_.ended_) {
        finished_ = true;
      } else {
        return;
      }
    }
    if (write) return StartWrite(SerializedStatus(status));
    Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"));
  }

 private:
  void Begin(const std::string& name) override {
    {
      MutexLock lock(service_.mu_);
      name_ = name;
      started_ = true;
    }
    Step();
  }

  // Guarded by the service's lock.
  std::string name_;
  bool started_ = false;
  std::optional<Response::ServingStatus> sent_;
  bool writing_ = false;
  bool finished_ = false;
  bool gone_ = false;
};

void HealthService::Set(const std::map<std::string, bool>& serving, std::string not_serving) {
  {
    MutexLock lock(mu_);
    for (const auto& [service, up] : serving) serving_.insert_or_assign(service, up);
    not_serving_ = std::move(not_serving);
  }
  StepAll();
}

void HealthService::EndWatches() {
  {
    MutexLock lock(mu_);
    ended_ = true;
  }
  StepAll();
}

void HealthService::StepAll() {
  std::vector<std::shared_ptr<WatchCall>> watches;
  {
    MutexLock lock(mu_);
    watches.assign(watches_.begin(), watches_.end());
  }
  for (const auto& watch : watches) watch->Step();
}

HealthService::Response::ServingStatus HealthService::ServiceStatus(const std::string& service) {
  const auto state = serving_.find(service);
  if (state == serving_.end()) return Response::SERVICE_UNKNOWN;
  return state->second ? Response::SERVING : Response::NOT_SERVING;
}

HealthService::HealthService(TimedOperations& reads, Connections& connections, Admission& admission,
                             const TrustedProxies& proxies) {
  Serve("Check", [&, this](grpc::CallbackServerContext* context) {
    return new CheckCall(*this, reads, connections, admission, proxies, *context);
  });
  Serve("Watch", [&, this](grpc::CallbackServerContext* context) {
    auto watch =
        std::make_shared<WatchCall>(*this, reads, connections, admission, proxies, *context);
    MutexLock lock(mu_);
    watches_.insert(watch);
    return watch.get();
  });
}

}  // namespace linnet::server
