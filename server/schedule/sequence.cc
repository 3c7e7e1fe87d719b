#include "server/schedule/sequence.h"

#include <utility>

#include "server/base/exceptions.h"

namespace linnet::server {

Sequence::~Sequence() {
  if (!accepted || sink == nullptr) return;
  absl::Status status(absl::StatusCode::kInternal, "");  // needs no memory
  try {
    status = absl::InternalError("the server failed while it had this text");
  } catch (...) {  // the code is enough
  }
  try {
    End(std::move(status));
  } catch (...) {
    LogException("sink_failed");
  }
}

void Sequence::End(absl::StatusOr<SequenceResult> result) {
  const std::unique_ptr<Sink> ended = std::move(sink);
  if (ended != nullptr) ended->Done(std::move(result));
}

}  // namespace linnet::server
