#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/base/mutex.h"
#include "server/metrics/metrics.h"
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
  // Called exactly once, with no lock held, on any thread. The call lets go of its permit before.
  using Done = absl::AnyInvocable<void(absl::Status)>;
  // Takes the parts of a stream, in order, one at a time, with no lock held, before Done. It must
  // not wait; what it keeps is no more than the answer.
  using OnPart = absl::AnyInvocable<void(linnet::v1::TextPart)>;
  struct Reply {
    linnet::v1::Timings& timings;
    const google::protobuf::Message& message;  // of which they are part
  };
  // Fills the response but for its timings.
  using Fill = absl::AnyInvocable<Reply(const TextRequest&, const std::vector<TextWork>&)>;

  // Pool and metrics outlive the call. Without `on_part` nothing is streamed. A call that takes
  // `slow` or longer leaves a line in the log that says what took so long. The permit is shared
  // with whoever holds the reply until it is sent; the call has at most `max_segments`.
  DecodingCall(TextPool& pool, Metrics& metrics, absl::Duration slow, int max_segments,
               TextRequest request, std::shared_ptr<Permit> permit, const CallContext& context,
               Fill fill, OnPart on_part, Done done);

  // Sends the call to the pool.
  void Start() { RunPrepare(); }

 private:
  // One segment, counted through all texts.
  struct Segment {
    SegmentWork* work = nullptr;
    int64_t tokens = 0;                  // of work, as the permit counts it
    std::vector<model::TokenId> stable;  // that the job on the pool has not seen yet
    bool done = false;                   // work->result is filled
  };
  class SegmentSink;

  void RunPrepare();
  void RunWork();
  // On the pool: splits and tokenises some of the texts, and submits the call after the last.
  void Prepare();
  absl::Status PrepareTexts();
  absl::Status Submit();
  int64_t BytesOfNextTurn() const;
  // On the pool, after a job has thrown.
  void Fail(absl::Status status);
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
  const int max_segments_;
  const TextRequest request_;
  std::shared_ptr<Permit> permit_;
  const int64_t request_bytes_;  // that the permit held when the call began
  const CallContext context_;
  Fill fill_;
  OnPart on_part_;
  Done done_;

  std::vector<TextWork> works_;
  absl::Time prepared_ = absl::InfinitePast();  // the pool has begun with it
  absl::Duration tokenize_ = absl::ZeroDuration();
  int segment_count_ = 0;
  int64_t encode_bytes_ = 0;  // held while texts are prepared
  int64_t reply_bytes_ = 0;
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
  int open_ ABSL_GUARDED_BY(mu_) = 0;           // sequences that have not ended
  bool at_work_ ABSL_GUARDED_BY(mu_) = false;   // a job is on the pool
  bool answered_ ABSL_GUARDED_BY(mu_) = false;  // done_ is called, or about to be
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
