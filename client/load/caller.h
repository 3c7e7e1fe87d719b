#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/library/client.h"
#include "client/load/abandonment.h"
#include "client/load/mix.h"
#include "client/load/record.h"

namespace linnet::client {

// Callers who do not wait for the answer: shares of all calls, from 0 to 1,
// together at most 1.
struct Abandonment {
  double deadlines = 0;    // give the call a deadline of `after`
  double cancels = 0;      // cancel it
  double disconnects = 0;  // are on a connection of their own, and cut it
  absl::Duration after = absl::Milliseconds(100);
};

// Makes the calls of a load run: what a call is, and whether its caller leaves,
// follows from its number alone. Any number of threads may call at once.
class Caller {
 public:
  // Connects `channels` channels, so that the first calls do not pay for it. An
  // error if an option is out of its range or the server does not answer.
  static absl::StatusOr<std::unique_ptr<Caller>> Connect(const ClientOptions& options, int channels,
                                                         std::vector<CallKind> kinds,
                                                         const Abandonment& abandonment,
                                                         uint64_t seed);

  // Makes call number `index` on the channel that is `caller`'s, and blocks
  // until it has ended.
  CallOutcome Call(int64_t index, int caller);

  // Ends every call that is under way, and each one to come, with CANCELLED.
  void Cancel();

  const std::vector<CallKind>& kinds() const { return kinds_; }

 private:
  Caller(const ClientOptions& options, std::vector<Client> clients, std::vector<CallKind> kinds,
         const Abandonment& abandonment, uint64_t seed);

  AbandonedBy AbandonedByOf(int64_t index) const;

  const ClientOptions options_;
  std::vector<Client> clients_;
  const std::vector<CallKind> kinds_;
  const Abandonment abandonment_;
  const uint64_t seed_;
  DelayedActions delayed_;
};

}  // namespace linnet::client
