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
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/search/search.h"

namespace linnet::model {

// Chosen by the caller, unique among the running sequences.
using SequenceId = uint64_t;

// One source with the options of its search; or with a target to score.
struct SequenceInput {
  SequenceId id = 0;
  // The tokens of a text, eos last, and the language tokens around them.
  std::vector<TokenId> source;
  int before_text = 0;  // number of language tokens before the text, and behind its eos
  int after_text = 0;
  std::vector<TokenId> prefix;  // forced start of the target, without eos
  // What the target spells behind the prefix; null: nothing. Not with sampling or a target to
  // score.
  std::shared_ptr<const SpelledStart> start = nullptr;
  // Language tokens that the target starts with, before a prefix or a target to score. No event
  // contains them (SearchSpec::silent). At most EngineInfo::max_language_tokens.
  std::vector<TokenId> silent = {};
  // A target to score instead of a search (Scorer), eos last. It is the only
  // hypothesis.
  std::optional<std::vector<TokenId>> target = std::nullopt;
  // Phrases, without eos, that the target must contain (BeamSearch): at most
  // Constraints::kMaxPhrases, together at most max_target_tokens long. They need a beam of at
  // least 2.
  std::vector<std::vector<TokenId>> constraints = {};
  // Tokens that must not follow a phrase: see Constraints.
  std::shared_ptr<const std::vector<TokenId>> continuations = nullptr;
  // The wished length of a target that is searched; null: none.
  std::shared_ptr<const TargetLength> length = nullptr;
  SearchOptions options = {};
  bool report_stable = false;  // fill SequenceEvent::stable, at a small cost per step
  // Fill SequenceEvent::attention: after the search the best target is decoded once more.
  bool align = false;
};

// Event of one sequence in a step. The engine has removed a finished sequence and freed its rows.
struct SequenceEvent {
  SequenceId id = 0;
  int target_tokens = 0;  // of the longest hypothesis so far
  bool finished = false;
  std::vector<Hypothesis> hypotheses;  // best first, n_best of them; only if finished
  // The prefix of the best hypothesis that can no longer change (Search::StablePrefix); only
  // with report_stable, and not for a finished sequence.
  std::vector<TokenId> stable;
  // Attention weights of the text's tokens for each token of the best hypothesis, [target, text]
  // row-major, eos included: the mean over the heads of one layer. The weights of language tokens
  // are left out. Only with `align`, and only for a finished sequence.
  std::vector<float> attention;
  absl::Status status;  // not OK: this sequence failed (and is finished), the others did not
};

// An encoder call costs, beside its tokens, as much as so many decoder steps, or as so many more
// source tokens.
struct EncoderCost {
  float call_steps = 0;
  int call_tokens = 0;
};

// Constant properties of an engine.
struct EngineInfo {
  std::string device;        // "cpu", "cuda:0"
  std::string compute_type;  // "float32", "bfloat16"
  // What the last bits of its answers depend on besides the bundle, as "int8 avx512", "float16
  // cuda:0".
  std::string compute;
  int threads = 1;                   // intra-op
  int rows = 0;                      // max hypotheses per step
  int64_t encoder_cache_tokens = 0;  // max source tokens in the encoder cache
  int vocabulary_size = 0;           // of targets
  int source_vocabulary_size = 0;    // of sources
  int max_language_tokens = 0;       // at the start of a target
  // The answer to a sequence is the same, bit for bit, in every batch.
  bool batch_invariant = false;
  bool shortlist = false;       // beam search is limited to the tokens of the bundle's shortlist
  std::string search = "host";  // "host", or "device" with details
  // The chosen algorithms of the gemms on a GPU, a line each, by all engines of this process.
  std::vector<std::string> gemms = {};
  // Measured on a device that runs the encoder beside the decoder; nothing on the CPU.
  std::optional<EncoderCost> encoder_cost = std::nullopt;
  // Grammar of searched and sampled targets; null: any token may follow any.
  std::shared_ptr<const TokenGrammar> grammar = nullptr;
  SpecialTokens special;
  SearchLimits limits;
};

// Puts the ids of a language pair around the tokens of a text (eos last), which `input.source`
// holds, and at the start of the target.
void AddLanguageTokens(const linnet::v1::LanguageTokens& languages, SequenceInput& input);
// The tokens of the text, eos last.
std::span<const TokenId> TextOf(const SequenceInput& input);
// Rows that a sequence needs: one per hypothesis, one for a target to score.
int RowsOf(const SequenceInput& sequence);
// Makes the search of a sequence that has passed CheckSequence. Its target may repeat an n-gram as
// often as the text does.
std::unique_ptr<Search> StartSearch(const SequenceInput& sequence, const EngineInfo& info);
// Returns InvalidArgumentError if an engine with this info can never decode the sequence; checks
// options, tokens, lengths, prefix, constraints and target.
absl::Status CheckSequence(const SequenceInput& sequence, const EngineInfo& info);

// Marks an error after which this process can no longer use the device (a CUDA context after an
// illegal address or a failed assertion), only a new process can.
absl::Status DeviceLost(absl::Status status);
bool IsDeviceLost(const absl::Status& status);

// Decodes many sequences at once, one token per row in a step. Known tokens of a target go through
// together: on the CPU a prefix, a target to score and the target of an alignment take one step
// each, with the bits of single steps; on a GPU they take a step for each token.
//
// It owns the rows, their decoder state, the encoder cache and the searches; the caller decides
// which sequences run. Sequences with different beam sizes, penalties and limits share a step, and
// the result of a sequence does not depend on the others (batch invariance). Not thread-safe: after
// construction, one thread makes all calls.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // True if Add would accept these now. A sequence needs RowsOf(it) rows, and its source tokens,
  // rounded up to whole blocks, in the encoder cache.
  virtual bool HasRoom(std::span<const SequenceInput> sequences) const = 0;
  // CheckSequence for this engine.
  virtual absl::Status Check(const SequenceInput& sequence) const = 0;

  // Encodes the sources as one batch and adds the sequences, all or none. They run from the next
  // Step on, or once a device has encoded them. Requires that each has passed Check and HasRoom is
  // true for them together.
  virtual absl::Status Add(std::span<const SequenceInput> sequences) = 0;

  // True while a device encodes what was added before: the sources of another Add would wait behind
  // it.
  virtual bool encoding() const { return false; }

  // Decodes one token per row; sequences with known tokens may wait for a later step. Returns one
  // event per sequence that is not paused, in the order of Add; a device decoder reports events one
  // step late (torch_engine.h). An error means that the step failed as a whole: all sequences are
  // lost and their rows are free.
  virtual absl::StatusOr<std::vector<SequenceEvent>> Step() = 0;

  // A paused sequence keeps its rows and its encoder blocks, and no step decodes it; on a device it
  // may end in the step that is in flight. Its answer is not affected. Both ignore unknown ids.
  void Pause(SequenceId id) { SetPaused(id, true); }
  void Resume(SequenceId id) { SetPaused(id, false); }

  // Removes a running sequence and frees its rows. Ignores unknown ids.
  virtual void Release(SequenceId id) = 0;

  virtual int sequences() const = 0;
  virtual int rows_in_use() const = 0;  // with those of paused sequences

 private:
  virtual void SetPaused(SequenceId id, bool paused) = 0;
};

}  // namespace linnet::model
