#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "linnet/v1/text_service.pb.h"
#include "server/admission/admission.h"
#include "server/base/mutex.h"
#include "server/metrics/metrics.h"
#include "server/request/glossary.h"
#include "server/request/text_request.h"
#include "server/schedule/sequence.h"
#include "server/text/part_writer.h"
#include "server/text/prepared_text.h"
#include "server/text/stage.h"
#include "server/text/staged_call.h"
#include "server/text/text_pool.h"
#include "server/text/text_preparer.h"

namespace linnet::server {

// One stage of a call: splits and tokenises its texts, decodes them, and assembles its result.
//
// Its jobs on the text pool, each a slice of about kBytesPerTurn, and its sinks share it; it is
// destroyed with the last of them, called or not. The scheduler's thread stores the results of the
// segments; at most one job on the pool at a time reads them.
class StageRun : public std::enable_shared_from_this<StageRun> {
 public:
  // Runs the current stage of the call, which owns the stage. Calls StageEnded once.
  explicit StageRun(std::shared_ptr<StagedCall> call);

  // Queues the first job on the pool.
  void Start();

 private:
  // One segment, numbered across all texts.
  struct Segment {
    SequenceResult* result = nullptr;  // in texts_
    int source_tokens = 0;
    int64_t tokens = 0;                  // its cost, as the permit counts it
    std::vector<model::TokenId> stable;  // not yet read by the job on the pool
    // The stable prefixes of an answer from the cache that are to be sent before its result.
    std::span<const int> stable_ends = {};
    std::shared_ptr<const CachedAnswer> cached = nullptr;  // owns stable_ends
    bool done = false;                                     // the result is filled
  };
  class SegmentSink;
  // What is submitted when all texts are prepared.
  struct Submission {
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<size_t> segments;  // of the sequences, parallel
    std::vector<Segment> all;      // without their places for results
    CallWork needed;
    int copied = 0;
  };

  void RunPrepare();
  void RunWork();
  void Run(TextStage stage, int64_t bytes, bool continues, void (StageRun::*job)());
  // On the pool: splits and tokenises a slice of the texts; after the last one, submits the call.
  void Prepare();
  absl::Status BeginPrepare();
  absl::Status PrepareSlice();
  // Not OK if nobody waits for the call.
  absl::Status CheckWanted() const;
  // Makes the sequences of the current text's segments, at most `max`, and returns their number.
  // CALL_TOO_LARGE as soon as the call can no longer fit.
  absl::StatusOr<int> AddSequences(std::vector<PreparedSegment>& segments, int max);
  absl::Status Submit();
  // The work of the next stage, as if its sources and targets had as many tokens as the sources of
  // this one.
  CallWork::Next EstimateNext(const TextRequest& next) const;
  // Charges the work of the call; in a later stage, corrects the estimate that was charged for it.
  absl::Status Charge(CallWork work);
  // Fills the result if the cache has it. Otherwise the sequence gets its key.
  bool AnswerFromCache(Sequence& sequence, Segment& segment, SequenceResult& result);
  // On the pool, after a job has thrown.
  void Fail(absl::Status status);
  // On the scheduler's thread.
  void SegmentStable(size_t index, std::vector<model::TokenId> stable);
  void SegmentDone(size_t index, absl::StatusOr<SequenceResult> result);
  // Queues a job on the pool unless there is one.
  void Wake();
  // On the pool: sends the stable text of the stream; ends the call after the last segment.
  void Work();
  void SendPart(linnet::v1::TextPart part);
  // Assembles a slice of the answer, and ends the call after the last one or with an error.
  void Assemble();
  void AddTimings(linnet::v1::Timings& timings) const;
  void LogIfSlow(const absl::Status& status) const;
  void End(absl::Status status);

  const std::shared_ptr<StagedCall> call_;
  Stage& stage_;
  const TextRequest& request_;  // of the stage
  TextPool& pool_;
  Metrics& metrics_;
  const CallContext& context_;
  std::shared_ptr<Permit> permit_;
  const int64_t request_bytes_;  // held by the permit when the stage began
  const bool streams_;

  std::vector<DecodedText> texts_;
  absl::Time prepared_ = absl::InfinitePast();  // when the pool began with it
  bool read_ = false;                           // the stage has its texts
  absl::Duration tokenize_ = absl::ZeroDuration();
  absl::Duration text_queue_;               // its jobs waited on the pool
  std::unique_ptr<TextPreparer> preparer_;  // of the current text
  std::vector<SequenceResult> results_;     // of its segments that are in submission_
  int64_t prepare_left_ = 0;                // bytes of text without a job so far
  Submission submission_;
  int segment_count_ = 0;
  std::optional<Glossary> glossary_;  // while texts are prepared
  int64_t prepare_bytes_ = 0;         // held for the same time
  int answer_jobs_ = 0;               // that were queued to assemble the answer
  absl::Time submitted_ = absl::InfinitePast();
  int rows_ = 0;  // sum over its sequences
  int64_t source_tokens_ = 0;
  bool part_sent_ = false;  // a part was sent
  std::optional<PartWriter> writer_;
  // Written by the scheduler's thread until all sequences have ended.
  SequenceTimes slowest_;
  int64_t target_tokens_ = 0;
  // False if a result was shared or the call waited for a load: its time says nothing about them.
  bool corrects_estimates_ = true;
  absl::Time ended_ = absl::InfinitePast();

  Mutex mu_;
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mu_);
  int open_ ABSL_GUARDED_BY(mu_) = 0;             // sequences that have not ended
  bool job_queued_ ABSL_GUARDED_BY(mu_) = false;  // a job is on the pool
  bool over_ ABSL_GUARDED_BY(mu_) = false;        // StageEnded was called, or is about to be
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::server
