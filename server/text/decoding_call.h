#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/metrics.h"
#include "server/mutex.h"
#include "server/schedule/admission.h"
#include "server/schedule/sequence.h"
#include "server/text/call_context.h"
#include "server/text/part_writer.h"
#include "server/text/text_pool.h"
#include "server/text/text_request.h"
#include "server/text/text_work.h"

namespace linnet::server {

// One call whose texts go through an engine, from its checked request to its answer.
//
// Its jobs on the pool and its sinks hold it together: the last of them to go lets it die, whether
// it was called or not, which is why the pointer is shared. The scheduler's thread files what
// becomes of the segments; a single job on the pool, at any time, reads it.
class DecodingCall : public std::enable_shared_from_this<DecodingCall> {
 public:
  // Called exactly once, with no lock held, on any thread. The permit is back by then.
  using Done = absl::AnyInvocable<void(absl::Status)>;
  // Takes the parts of a stream, in order, one at a time, with no lock held, before Done. It must
  // not wait; what it keeps is no more than the answer.
  using OnPart = absl::AnyInvocable<void(linnet::v1::TextPart)>;
  // Fills the response but for its timings, which it returns.
  using Fill =
      absl::AnyInvocable<linnet::v1::Timings&(const TextRequest&, const std::vector<TextWork>&)>;

  // Pool and metrics outlive the call. Without `on_part` nothing is streamed. A call that takes
  // `slow` or longer leaves a line in the log that says what took so long.
  DecodingCall(TextPool& pool, Metrics& metrics, absl::Duration slow, TextRequest request,
               Permit permit, const CallContext& context, Fill fill, OnPart on_part, Done done);

  // On the pool.
  void Prepare();

 private:
  // One segment, counted through all texts.
  struct Segment {
    SegmentWork* work = nullptr;
    int64_t tokens = 0;                  // of work, as the permit counts it
    std::vector<model::TokenId> stable;  // that the job on the pool has not seen yet
    bool done = false;                   // work->result is filled
  };
  class SegmentSink;

  absl::Status PrepareAndSubmit();
  // On the scheduler's thread.
  void SegmentStable(size_t index, std::vector<model::TokenId> stable);
  void SegmentDone(size_t index, absl::StatusOr<SequenceResult> result);
  // Sends the call to the pool.
  void Wake();
  // On the pool: hands on what there is of the stream, and ends the call once all has ended.
  void Work();
  void HandOn(linnet::v1::TextPart part);
  void Assemble();
  void LogIfSlow(const absl::Status& status) const;
  void End(absl::Status status);

  bool streams() const { return on_part_ != nullptr; }

  TextPool& pool_;
  Metrics& metrics_;
  const absl::Duration slow_;
  const TextRequest request_;
  std::optional<Permit> permit_;
  const CallContext context_;
  Fill fill_;
  OnPart on_part_;
  Done done_;

  std::vector<TextWork> works_;
  absl::Time prepared_ = absl::InfinitePast();  // the pool has begun with it
  absl::Duration tokenize_;
  absl::Time submitted_ = absl::InfinitePast();
  int rows_ = 0;  // of all its sequences
  int64_t source_tokens_ = 0;
  bool begun_ = false;  // a part was handed on
  std::optional<PartWriter> writer_;
  // The scheduler's, until all has ended.
  SequenceTimes slowest_;
  int64_t target_tokens_ = 0;
  absl::Time ended_ = absl::InfinitePast();

  Mutex mu_;
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mu_);
  int open_ ABSL_GUARDED_BY(mu_) = 0;          // sequences that have not ended
  bool at_work_ ABSL_GUARDED_BY(mu_) = false;  // a job is on the pool
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
