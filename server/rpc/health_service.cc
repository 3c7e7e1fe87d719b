#include "server/rpc/health_service.h"

#include <optional>
#include <utility>
#include <vector>

namespace linnet::server {

// One who watches a service: told its state at once and whenever it changes, one write at a time.
// The service keeps it until gRPC is done with it.
class HealthService::WatchCall final : public grpc::ServerWriteReactor<Response>,
                                       public std::enable_shared_from_this<WatchCall> {
 public:
  WatchCall(HealthService& service, std::string name) : service_(service), name_(std::move(name)) {}

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

  // Writes what there is to tell, or finishes. Decides under the lock, acts after it.
  void Step() {
    bool write = false;
    {
      MutexLock lock(service_.mu_);
      if (writing_ || finished_) return;
      const auto state = service_.serving_.find(name_);
      const auto status = state == service_.serving_.end() ? Response::SERVICE_UNKNOWN
                          : state->second                  ? Response::SERVING
                                                           : Response::NOT_SERVING;
      if (!gone_ && status != told_) {
        told_ = status;
        response_.set_status(status);
        write = writing_ = true;
      } else if (gone_ || service_.ended_) {
        finished_ = true;
      } else {
        return;
      }
    }
    if (write) return StartWrite(&response_);
    Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"));
  }

 private:
  HealthService& service_;
  const std::string name_;
  Response response_;  // of the write under way
  // Under the service's lock.
  std::optional<Response::ServingStatus> told_;
  bool writing_ = false;
  bool finished_ = false;
  bool gone_ = false;
};

void HealthService::Set(const std::string& service, bool serving) {
  {
    MutexLock lock(mu_);
    const auto [state, added] = serving_.emplace(service, serving);
    if (!added && std::exchange(state->second, serving) == serving) return;
  }
  StepAll();
}

void HealthService::SetNotServing(std::string models) {
  MutexLock lock(mu_);
  not_serving_ = std::move(models);
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

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const Request* request, Response* response) {
  grpc::Status status;
  {
    MutexLock lock(mu_);
    const auto state = serving_.find(request->service());
    if (state == serving_.end()) {
      status = grpc::Status(grpc::StatusCode::NOT_FOUND, "no health is kept under this name");
    } else {
      response->set_status(state->second ? Response::SERVING : Response::NOT_SERVING);
      if (request->service().empty() && !not_serving_.empty())
        context->AddTrailingMetadata("linnet-not-serving", not_serving_);
    }
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

grpc::ServerWriteReactor<HealthService::Response>* HealthService::Watch(
    grpc::CallbackServerContext* /*context*/, const Request* request) {
  auto watch = std::make_shared<WatchCall>(*this, request->service());
  {
    MutexLock lock(mu_);
    watches_.insert(watch);
  }
  watch->Step();
  return watch.get();
}

}  // namespace linnet::server
