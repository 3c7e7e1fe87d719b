#pragma once

namespace linnet::server {

// Routes the logs of gRPC and protobuf into our log, as events `library`, instead of standard
// error. So a JSON log stays JSON, the log level applies, and no thread blocks on the reader of the
// log. gRPC's errors (GRPC_VERBOSITY selects more) are mostly caused by clients and become
// warnings; protobuf complains about texts that are not UTF-8, which our own errors report better.
// Call it at start, before other threads exist.
void TakeLibraryLogs();

}  // namespace linnet::server
