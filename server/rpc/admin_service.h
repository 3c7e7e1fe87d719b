#pragma once

#include "linnet/v1/admin_service.grpc.pb.h"
#include "server/admin/admin_calls.h"
#include "server/rpc/call_record.h"
#include "server/rpc/raw_methods.h"

namespace linnet::server {

// linnet.v1.AdminService, a thin shell around AdminCalls. Authorisation is checked where it is
// served.
class AdminService : public RawMethods<linnet::v1::AdminService> {
 public:
  // The objects that `services` refers to must outlive the service.
  AdminService(AdminCalls& calls, const CallServices& services);
};

}  // namespace linnet::server
