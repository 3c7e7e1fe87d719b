#pragma once

#include <cstdint>

#include "model/ops/params.h"

// What crosses between an engine and the beam search that runs beside its model (beam_search.h): a
// plan goes in with every step, a record comes out of it, and tables stay where the search runs.
// All of it is 32-bit words, so that each is one tensor and one copy.
namespace linnet::ops {

// The widest beam that is searched there, and what is looked at of each of its rows.
constexpr int kMaxBeam = 16;
constexpr int kMaxFound = 2 * kMaxBeam;
// Entries of a history: CUDA lists a row's repeats in shared memory.
constexpr int kMaxHistory = 8192;

// Row r of the plan says of the step's row r to which search it belongs, and, independent of that,
// what search number r is to do. The blocks of its source follow as words of the same row.
struct BeamPlan {
  int32_t search;     // the row's: a number of a search, or -1 for a row that only fills up
  int32_t beam;       // lanes of this search; 0 where there is no search of this number
  int32_t first_row;  // its rows are first_row … first_row + beam - 1, row i's state is in lanes[i]
  int32_t position;  // steps taken before this one; at 0 the search starts, whatever the tables say
  int32_t forced;    // the token that comes next in all its hypotheses, or -1
  int32_t may_end;   // 0: eos is forbidden
  int32_t ngram;     // no n-gram of this size comes twice; 0 forbids nothing
  float unknown_penalty;
  float temperature;
  int32_t source_tokens;
  int32_t left;  // tokens that may follow the one that is chosen, before eos is forced
  int32_t slots[kMaxBeam];
};
constexpr int kPlanWords = sizeof(BeamPlan) / sizeof(int32_t);

// One hypothesis that grew by a token.
struct BeamEntry {
  int32_t parent;  // the hypothesis's number before the step
  int32_t token;   // or a BeamStatus
  float log_probability;
  float sum;
};

enum BeamStatus : int32_t {
  kNoEntry = -1,
  // The search has failed. Of hypothesis `parent` the model gave no probabilities: its normalizer
  // is `log_probability`.
  kNoProbabilities = -2,
  // The search has failed: every token is forbidden or has no finite log-probability.
  kNothingPossible = -3,
};

// Row first_row + i of the record: what hypothesis i is after the step, and the i-th hypothesis
// that ended in it, in the order of their sums. A failure is told in `ended` of the first row.
struct BeamRecord {
  BeamEntry next;
  BeamEntry ended;
};
constexpr int kRecordWords = sizeof(BeamRecord) / sizeof(int32_t);

// What stays with the search, by lane. History holds the start token and the target behind it, of
// sequences that forbid n-grams, in half number position % 2; it is read and written by turns.
struct BeamTables {
  int32_t* tokens;        // [lanes]: the next input of the hypothesis
  float* sums;            // [lanes]
  int32_t* backpointers;  // [lanes, reach], as the step operators take it
  int32_t* history;       // [2, lanes, longest]
  int32_t* counts;  // [lanes, 2], at the search's first lane: hypotheses that live, that ended
  int32_t* states;  // [lanes]: of the grammar, behind the hypothesis's last token
  int64_t slots, reach, longest;
};

struct BeamSpecialTokens {
  int32_t start, pad, eos, unk;
};

// The automaton that says which token may follow which: TokenGrammar of model/runtime. State 0 is
// that of an empty target.
struct BeamGrammar {
  static constexpr int32_t kBarred = 1 << 8, kStateMask = kBarred - 1;
  const uint8_t* classes;      // [vocabulary]; null: any token may follow any
  const int32_t* transitions;  // [states, class_count]: the next state, with kBarred if not allowed
  const int32_t* tails;        // [states]: tokens that must follow before a character ends
  int32_t class_count;
};

struct BeamInputsParams {
  const int32_t* plan;  // [rows, plan_stride]
  BeamTables tables;
  BeamSpecialTokens special;
  int64_t* tokens;          // [rows]
  int32_t* positions;       // [rows]
  int32_t* backpointers;    // [rows, reach]
  int32_t* blocks;          // [rows, row_blocks]
  int32_t* source_lengths;  // [rows]
  int64_t rows, plan_stride, row_blocks;
};

struct BeamStepParams {
  const int32_t* plan;
  BeamTables tables;
  BeamSpecialTokens special;
  BeamGrammar grammar;
  FloatType type;
  const void* logits;           // [rows, vocabulary]
  const int32_t* backpointers;  // [rows, reach], what BeamInputs gave
  BeamRecord* record;           // [rows]
  // Between the two halves of a step: of each row the highest logits that are not forbidden,
  // falling, of equal ones the lower token first; the logit of the token that is forced or pays a
  // penalty; the normalizer.
  float* found;            // [rows, kMaxFound]
  int32_t* found_tokens;   // [rows, kMaxFound], -1 behind the last
  float* also;             // [rows], -infinity where there is none
  float* log_normalizers;  // [rows]
  int64_t rows, plan_stride, vocabulary;
};

void BeamInputsCpu(const BeamInputsParams& params);
void BeamStepCpu(const BeamStepParams& params);  // float32
void BeamInputsCuda(const BeamInputsParams& params, void* stream);
void BeamStepCuda(const BeamStepParams& params, void* stream);

}  // namespace linnet::ops
