#pragma once

namespace linnet::server {

// What gRPC and protobuf have to say becomes lines of our log, events `library`, and does not go
// past it to standard error: so a log of JSON stays one, has its level, and nobody waits for its
// reader. gRPC's errors (GRPC_VERBOSITY asks for more) are mostly those of clients and are
// warnings here; protobuf complains of texts that are not UTF-8, which the answer says better. At
// start, before there are other threads.
void TakeLibraryLogs();

}  // namespace linnet::server
