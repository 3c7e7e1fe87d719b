#pragma once

namespace linnet::client {

// Exit statuses of the commands. A call that fails gives 64 + the number of its gRPC code: 78 = 64
// + UNAVAILABLE.
inline constexpr int kExitOk = 0;
// A text cannot be read or is not UTF-8, or output cannot be written.
inline constexpr int kExitLocal = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRefused = 3;  // texts were refused and skipped, the others answered
inline constexpr int kExitCode = 64;

}  // namespace linnet::client
