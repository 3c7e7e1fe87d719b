#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/runtime/search/search.h"

namespace linnet::model {

// Chosen by the caller, unique among the sequences that are seated.
using SequenceId = uint64_t;

// One source, and how its target is searched; or the target, which then is scored.
struct SequenceInput {
  SequenceId id = 0;
  std::vector<TokenId> source;  // eos last
  std::vector<TokenId> prefix;  // forced start of the target, without eos
  // Eos last. Its scores are wanted, and the single hypothesis is this target: BeamSearch::Scoring.
  std::optional<std::vector<TokenId>> target = std::nullopt;
  // Phrases, without eos, that the target is to contain (BeamSearch): at most
  // Constraints::kMaxPhrases, and no longer together than the longest target. They want a beam of
  // at least two.
  std::vector<std::vector<TokenId>> constraints = {};
  // Tokens that may not follow them: Constraints.
  std::shared_ptr<const std::vector<TokenId>> continuations = nullptr;
  SearchOptions options = {};
  bool report_stable = false;  // fill SequenceEvent::stable, which costs a little at every step
  // Fill SequenceEvent::attention: the decoder goes through the best target once more, in one row.
  // Only of an engine that aligns.
  bool align = false;
};

// What a step did for one sequence. A finished sequence has left its rows.
struct SequenceEvent {
  SequenceId id = 0;
  int target_tokens = 0;  // steps taken so far
  bool finished = false;
  std::vector<Hypothesis> hypotheses;  // best first, n_best of them; only if finished
  // What the best hypothesis will start with, whatever comes (BeamSearch::StablePrefix); only if
  // asked for, and not of a finished sequence.
  std::vector<TokenId> stable;
  // How much each token of the source counted for each of the best hypothesis, [target, source]
  // row-major, the ends included: the mean over the heads of one layer's attention. Only if asked
  // for, and of a finished sequence.
  std::vector<float> attention;
  absl::Status status;  // not OK: this sequence failed (and is finished), the others did not
};

// Facts of an engine that do not change while it lives.
struct EngineInfo {
  std::string device;                // "cpu", "cuda:0"
  std::string compute_type;          // "float32", "bfloat16"
  int threads = 1;                   // inside a step
  int rows = 0;                      // hypotheses that a step holds at most
  int64_t encoder_cache_tokens = 0;  // source tokens that the encoder memory holds at most
  int vocabulary_size = 0;           // of targets
  int source_vocabulary_size = 0;    // of sources
  std::string search = "host";       // where targets are searched; on a device also by which means
  bool aligns = false;               // can fill SequenceEvent::attention
  // What targets that are searched or drawn keep to; null: any token may follow any.
  std::shared_ptr<const TokenGrammar> grammar = nullptr;
  SpecialTokens special;
  SearchLimits limits;
};

// Rows that a sequence takes: a hypothesis each, and a target that is scored is a single one.
int RowsOf(const SequenceInput& sequence);
// The search of a sequence that has passed CheckSequence.
BeamSearch StartSearch(const SequenceInput& sequence, const EngineInfo& info);
// InvalidArgumentError if an engine of these facts could never seat or decode the sequence:
// options, tokens, lengths, prefix, target.
absl::Status CheckSequence(const SequenceInput& sequence, const EngineInfo& info);

// The same error, marked: nothing in this process can use the device again (a CUDA context after an
// illegal address or a failed assert), only another process can.
absl::Status DeviceLost(absl::Status status);
bool IsDeviceLost(const absl::Status& status);

// Decodes many sequences at once, a token for each row in a step.
//
// It owns the rows, their decoder state, the encoder memory and the searches; who sits when is the
// caller's business. Rows of different requests, beam sizes, penalties and limits share a step, and
// what a sequence becomes does not depend on its company. Not thread-safe: one thread at a time
// calls it, and always the same one after the first call.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // Would these be seated now? A sequence takes RowsOf it, and its source's length in memory,
  // rounded up to whole blocks.
  virtual bool HasRoom(std::span<const SequenceInput> sequences) const = 0;
  // CheckSequence for this engine.
  virtual absl::Status Check(const SequenceInput& sequence) const = 0;

  // Encodes the sources as one batch and seats them: all or none. They take part from the next Step
  // on, or once a device has encoded them. Every sequence has passed Check and HasRoom was true for
  // them together.
  virtual absl::Status Add(std::span<const SequenceInput> sequences) = 0;

  // One token for every row that is seated. An event for each sequence, in the order of seating: of
  // an engine that works ahead, what an earlier step did (torch_engine.h). An
  // error means that the step as a whole failed; all sequences that were seated are lost and their
  // rows are free again.
  virtual absl::StatusOr<std::vector<SequenceEvent>> Step() = 0;

  // Frees the rows of a sequence that is not wanted any more. Ids that are not seated are ignored.
  virtual void Release(SequenceId id) = 0;

  virtual int sequences() const = 0;
  virtual int rows_in_use() const = 0;
};

}  // namespace linnet::model
