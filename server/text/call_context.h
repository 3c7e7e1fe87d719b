#pragma once

#include <atomic>
#include <memory>

#include "absl/time/time.h"
#include "server/schedule/caller.h"

namespace linnet::server {

// What a call brings beside its request.
struct CallContext {
  absl::Time arrived;
  absl::Time deadline = absl::InfiniteFuture();
  // Set by whoever no longer wants the answer. The call sets it as well, to stop its other segments
  // when one has failed.
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  Caller caller = {};  // its call is 0 unless the call is part of another
};

}  // namespace linnet::server
