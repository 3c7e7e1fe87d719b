#pragma once

#include "linnet/v1/text_service.grpc.pb.h"
#include "server/rpc/call_record.h"
#include "server/rpc/raw_methods.h"
#include "server/text/text_call.h"

namespace linnet::server {

// linnet.v1.TextService on gRPC's callback API: a thin shell around TextCalls. gRPC's threads
// parse, check and submit; they never block.
class TextService : public RawMethods<linnet::v1::TextService> {
 public:
  // The objects that `services` refers to must outlive the service.
  TextService(TextCalls& calls, const CallServices& services);
};

}  // namespace linnet::server
