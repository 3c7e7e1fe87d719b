#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "linnet/v1/admin_service.pb.h"
#include "server/models/catalog.h"
#include "server/models/reloader.h"

namespace linnet::server {

// AdminService without gRPC. Thread-safe; nothing blocks.
class AdminCalls {
 public:
  // Called exactly once, with no lock held, on any thread, possibly before the method returns.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // Both must outlive this object and every call.
  AdminCalls(Catalog& catalog, Reloader& reloader) : catalog_(catalog), reloader_(reloader) {}

  // Request and response belong to the caller and must live until `done` is called. The response is
  // valid only if the status is OK.
  void Reload(const linnet::v1::ReloadRequest& request, linnet::v1::ReloadResponse& response,
              Done done);
  void GetBatch(const linnet::v1::GetBatchRequest& request, linnet::v1::GetBatchResponse& response,
                Done done);
  absl::Status SetLogLevel(const linnet::v1::SetLogLevelRequest& request,
                           linnet::v1::SetLogLevelResponse& response);

 private:
  Catalog& catalog_;
  Reloader& reloader_;
};

}  // namespace linnet::server
