#pragma once

#include <cstdint>

#include "model/ops/params.h"

// The data of the beam search that runs on the model's device (beam_search.h). The engine sends a
// plan with every step and gets a record back; the tables stay on the device. All fields are 32-bit
// words, so that each of the three is one tensor and one copy.
namespace linnet::ops {

// Max beam size, and max number of candidates that a step keeps of each row.
constexpr int kMaxBeam = 16;
constexpr int kMaxFound = 2 * kMaxBeam;
// Max entries of a history. The limit is CUDA's: it lists the tokens that would repeat an n-gram of
// a row in shared memory.
constexpr int kMaxHistory = 8192;
// The longest n-gram that may occur only so many times in a row (model/runtime/search/repeats.h).
constexpr int kMaxRepeatedNgram = 16;
// CUDA reads a row of logits in so many columns.
constexpr int kLogitColumns = 512;

// Row r of the plan holds two independent things: the number of the search that row r of the step
// belongs to (`search`), and the parameters of search number r (all other fields). The encoder
// cache blocks of its source follow as words of the same row.
struct BeamPlan {
  int32_t search;     // search of the step's row r, or -1 for a padding row
  int32_t beam;       // slots of search r; 0 where no search has this number
  int32_t first_row;  // its rows are first_row … first_row + beam - 1; row i's state is in slots[i]
  int32_t position;  // steps taken before this one; at 0 the search starts and ignores the tables
  int32_t forced;    // the next token of all its hypotheses, or -1
  int32_t may_end;   // 0: eos is forbidden
  int32_t ngram;     // no n-gram of this size occurs twice; 0 forbids nothing
  int32_t repeats;   // no n-gram occurs more often in a row; 0 forbids nothing
  float unknown_penalty;
  float temperature;
  int32_t source_tokens;
  int32_t left;    // tokens that may follow the chosen one before eos is forced
  int32_t silent;  // 1: the log-probability of the forced token counts as 0
  int32_t slots[kMaxBeam];
};
constexpr int kPlanWords = sizeof(BeamPlan) / sizeof(int32_t);

// A hypothesis that was extended by one token.
struct BeamEntry {
  int32_t parent;  // number of its hypothesis before the step
  int32_t token;   // or a BeamStatus
  float log_probability;
  float sum;
};

enum BeamStatus : int32_t {
  kNoEntry = -1,
  // The search has failed: the normalizer of hypothesis `parent` is not finite. Its value is in
  // `log_probability`.
  kNoProbabilities = -2,
  // The search has failed: every token is forbidden or has no finite log-probability.
  kNothingPossible = -3,
};

// Row first_row + i of the record: hypothesis i after the step, and the i-th hypothesis that ended
// in the step, in the order of their sums. A failure is reported in `ended` of the first row.
struct BeamRecord {
  BeamEntry next;
  BeamEntry ended;
};
constexpr int kRecordWords = sizeof(BeamRecord) / sizeof(int32_t);

// State of the searches by slot, kept on the device from step to step. `history` holds the start
// token and the target tokens of sequences that forbid repeats. It has two halves: a step
// reads half position % 2 and writes the other one.
struct BeamTables {
  int32_t* tokens;        // [slots]: the next input of the hypothesis
  float* sums;            // [slots]: its sum of log-probabilities
  int32_t* backpointers;  // [slots, reach], as in convolution_step.h
  int32_t* history;       // [2, slots, longest]
  int32_t* counts;        // [slots, 2], at the search's first slot: live hypotheses, ended ones
  int32_t* states;        // [slots]: the grammar state after the hypothesis's last token
  int64_t slots, reach, longest;
};

struct BeamSpecialTokens {
  int32_t start, pad, eos, unk;
};

// The automaton of tokens that may follow one another (model/runtime/search/token_grammar.h).
// State 0 is that of an empty target.
struct BeamGrammar {
  static constexpr int32_t kForbidden = 1 << 8, kStateMask = kForbidden - 1;
  const uint8_t* classes;      // [vocabulary]; null: there is no grammar
  const int32_t* transitions;  // [states, class_count]: the next state, perhaps with kForbidden
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
  const int32_t* backpointers;  // [rows, reach], from BeamInputs
  BeamRecord* record;           // [rows]
  // Results of the first half of a step, read by the second: of each row the highest logits that
  // are not forbidden, in descending order, equal ones by ascending token; the logit of the token
  // that is forced or pays a penalty; the normalizer.
  float* found;            // [rows, kMaxFound]
  int32_t* found_tokens;   // [rows, kMaxFound], -1 after the last
  float* also;             // [rows], -infinity where there is none
  float* log_normalizers;  // [rows]
  int64_t rows, plan_stride, vocabulary;
  // Scratch memory of CUDA; the CPU does not use it.
  float* column_highest;  // [rows, kLogitColumns]
  float* column_sums;     // [rows, kLogitColumns / 32, 2]
  int32_t* repeated;      // [rows, longest + kMaxRepeatedNgram]
};

void BeamInputsCpu(const BeamInputsParams& params);
void BeamStepCpu(const BeamStepParams& params);  // float32
void BeamInputsCuda(const BeamInputsParams& params, void* stream);
void BeamStepCuda(const BeamStepParams& params, void* stream);

}  // namespace linnet::ops
