#pragma once

#include <cmath>
#include <cstdint>

#include "model/ops/both.h"
#include "model/ops/search/beam_params.h"

// One step of the beam search of one sequence, shared by both devices: the CPU runs it on one
// thread, CUDA on the threads of a block. Given the same logits and normalizers it computes the
// same bits as BeamSearch (model/runtime/search/beam_search.h).
namespace linnet::ops {

// A team is the group of threads that work on one search: thread `index` of `size`, and a barrier.
// This is a team of one thread.
struct SingleThread {
  LINNET_BOTH int index() const { return 0; }
  LINNET_BOTH int size() const { return 1; }
  LINNET_BOTH void Sync() const {}
};

LINNET_BOTH const BeamPlan& PlanAt(const int32_t* plan, int64_t stride, int64_t number) {
  return *reinterpret_cast<const BeamPlan*>(plan + number * stride);
}

// The number of live hypotheses of the search. It is 0 once the search has ended; the host, which
// writes the plans, learns that one or more steps later.
LINNET_BOTH int LiveHypotheses(const BeamPlan& plan, const BeamTables& tables) {
  return plan.position == 0 ? 1 : tables.counts[2 * plan.slots[0]];
}

LINNET_BOTH const int32_t* HistoryAt(const BeamTables& tables, int32_t position, int32_t slot) {
  return tables.history + ((position % 2) * tables.slots + slot) * tables.longest;
}

// The grammar state of the hypothesis in `slot` before the step.
LINNET_BOTH int32_t GrammarState(const BeamPlan& plan, const BeamTables& tables, int32_t slot) {
  return plan.position == 0 ? 0 : tables.states[slot];
}

LINNET_BOTH int32_t NextState(const BeamGrammar& grammar, int32_t state, int32_t token) {
  if (grammar.classes == nullptr) return 0;
  const int32_t at = state * grammar.class_count + grammar.classes[token];
  return grammar.transitions[at] & BeamGrammar::kStateMask;
}

// True inside a multi-token character. There neither rules against repeats nor the length limit
// apply.
LINNET_BOTH bool InCharacter(const BeamGrammar& grammar, int32_t state) {
  return grammar.classes != nullptr && grammar.tails[state] > 0;
}

LINNET_BOTH bool IsForbiddenByGrammar(const BeamGrammar& grammar, const BeamPlan& plan,
                                      int32_t state, int32_t token) {
  if (grammar.classes == nullptr) return false;
  const int32_t next = grammar.transitions[state * grammar.class_count + grammar.classes[token]];
  return (next & BeamGrammar::kForbidden) != 0 ||
         (grammar.tails[state] == 0 && grammar.tails[next & BeamGrammar::kStateMask] > plan.left);
}

// True if the n-gram at `begin` starts with the last n - 1 tokens of the history, so that its last
// token would repeat it if it came next. The history has `size` tokens; begin <= size - n.
LINNET_BOTH bool StartsRepeat(const int32_t* history, int size, int n, int begin) {
  for (int i = 0; i < n - 1; ++i) {
    if (history[begin + i] != history[size - (n - 1) + i]) return false;
  }
  return true;
}

// True if the token that was n before the next one would end one more than `times` consecutive
// occurrences of an n-gram of n tokens, of which a third or later one counts without its last token
// (model/runtime/search/repeats.h). `target` has `size` tokens.
LINNET_BOTH bool EndsRepeats(const int32_t* target, int size, int n, int times) {
  const int compared = n * times - 1 - (n > 1 && times > 1 ? 1 : 0);
  if (size < compared + n) return false;
  for (int i = size - compared; i < size; ++i) {
    if (target[i] != target[i - n]) return false;
  }
  return true;
}

// Calls add(token) for each token of the `index`-th of `count` parts of those that would repeat an
// n-gram of the history, some of them twice. The history has plan.position + 1 tokens, of which the
// start token is the first; it counts in the rule of plan.ngram only. eos is exempt: in models
// whose start token is eos, a rule against repeated single tokens would forbid it for good.
template <class Add>
LINNET_BOTH void ForRepeats(const BeamPlan& plan, const BeamSpecialTokens& special,
                            const int32_t* history, int index, int count, const Add& add) {
  const int size = plan.position + 1;
  for (int begin = index; plan.ngram > 0 && begin + plan.ngram <= size; begin += count) {
    const int32_t token = history[begin + plan.ngram - 1];
    if (token != special.eos && StartsRepeat(history, size, plan.ngram, begin)) add(token);
  }
  for (int n = 1 + index; plan.repeats > 0 && n <= kMaxRepeatedNgram && n < size; n += count) {
    const int32_t token = history[size - n];
    if (token != special.eos && EndsRepeats(history + 1, size - 1, n, plan.repeats)) add(token);
  }
}

// True for searches that keep their histories.
LINNET_BOTH bool ForbidsRepeats(const BeamPlan& plan) { return plan.ngram > 0 || plan.repeats > 0; }

// True for tokens that the ranking of logits skips for every hypothesis of the search: forbidden
// tokens, and `unk` where it pays a penalty, since `also` holds its logit.
LINNET_BOTH bool IsSetAside(const BeamPlan& plan, const BeamSpecialTokens& special, int32_t token) {
  return token == special.pad || (token == special.eos && plan.may_end == 0) ||
         (token == special.unk && plan.unknown_penalty != 0);
}

// The token whose logit is needed even if it is not among the highest, or -1.
LINNET_BOTH int32_t ExtraToken(const BeamPlan& plan, const BeamSpecialTokens& special) {
  if (plan.forced >= 0) return plan.forced;
  const bool competes = plan.unknown_penalty != 0 && special.unk != special.pad &&
                        (special.unk != special.eos || plan.may_end != 0);
  return competes ? special.unk : -1;
}

// Writes the model's inputs of one row: those of a live hypothesis, or those of an idle row.
template <class Team>
LINNET_BOTH void FillRow(const BeamInputsParams& p, int64_t row, const Team& team) {
  const int32_t number = PlanAt(p.plan, p.plan_stride, row).search;
  const BeamPlan* plan = number < 0 ? nullptr : &PlanAt(p.plan, p.plan_stride, number);
  const int i = plan == nullptr ? 0 : static_cast<int>(row) - plan->first_row;
  const bool idle = plan == nullptr || i >= LiveHypotheses(*plan, p.tables);
  const int32_t slot = idle ? -1 : plan->slots[i];
  if (team.index() == 0) {
    p.tokens[row] = idle ? 0 : plan->position == 0 ? p.special.start : p.tables.tokens[slot];
    p.positions[row] = idle ? 0 : plan->position;
    p.source_lengths[row] = idle ? 0 : plan->source_tokens;
  }
  for (int64_t j = team.index(); j < p.tables.reach; j += team.size()) {
    // At position 0 only entry 0, the row's own slot, is read.
    p.backpointers[row * p.tables.reach + j] =
        idle || plan->position == 0 ? slot : p.tables.backpointers[slot * p.tables.reach + j];
  }
  const int32_t* blocks = p.plan + (idle ? 0 : number) * p.plan_stride + kPlanWords;
  for (int64_t j = team.index(); j < p.row_blocks; j += team.size()) {
    p.blocks[row * p.row_blocks + j] = idle ? 0 : blocks[j];
  }
}

struct BeamCandidate {
  float sum, log_probability, logit;
  int32_t parent, token;  // token -1: none
};

// The order of model/runtime/search/candidates.h.
LINNET_BOTH bool Better(const BeamCandidate& a, const BeamCandidate& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  if (a.parent != b.parent) return a.parent < b.parent;
  if (a.logit != b.logit) return a.logit > b.logit;
  return a.token < b.token;
}

// Scratch memory that a team shares while it works on a search.
struct BeamScratch {
  BeamCandidate all[kMaxBeam * (kMaxFound + 1)];
  BeamCandidate best[kMaxFound];
  BeamEntry next[kMaxBeam];
  int32_t states[kMaxBeam];  // grammar states after `next`
  int live, ended;
};

LINNET_BOTH bool IsFinite(float value) { return value - value == 0; }

// Candidate number `at` of hypothesis i: one of `found`, or for at == 2 * beam the one in `also`.
// Its token is -1 where there is none.
LINNET_BOTH BeamCandidate ReadCandidate(const BeamStepParams& p, const BeamPlan& plan, int i,
                                        int at) {
  const int64_t row = plan.first_row + i;
  const bool is_also = at == 2 * plan.beam;
  BeamCandidate candidate = {0, 0, 0, i, -1};
  candidate.token = is_also            ? ExtraToken(plan, p.special)
                    : plan.forced >= 0 ? -1
                                       : p.found_tokens[row * kMaxFound + at];
  if (candidate.token < 0) return candidate;
  candidate.logit = is_also ? p.also[row] : p.found[row * kMaxFound + at];
  const float penalty = candidate.token == p.special.unk ? plan.unknown_penalty : 0.0f;
  candidate.log_probability =
      is_also && plan.forced >= 0 && plan.silent != 0
          ? 0.0f
          : candidate.logit / plan.temperature - p.log_normalizers[row] - penalty;
  const float sum = plan.position == 0 ? 0.0f : p.tables.sums[plan.slots[i]];
  candidate.sum = sum + candidate.log_probability;
  if (!IsFinite(candidate.sum)) candidate.token = -1;
  return candidate;
}

// Selects from s.best the hypotheses that end and those that continue, by fairseq's rules, as
// BeamSearch::Advance does. One thread calls it. `record` is the record of the search's first row.
LINNET_BOTH void PickNext(const BeamPlan& plan, const BeamSpecialTokens& special, BeamScratch& s,
                          BeamRecord* record) {
  int live = 0, ended_now = 0;
  for (int rank = 0; rank < 2 * plan.beam && s.best[rank].token >= 0; ++rank) {
    const BeamCandidate& candidate = s.best[rank];
    const BeamEntry entry = {candidate.parent, candidate.token, candidate.log_probability,
                             candidate.sum};
    if (candidate.token == special.eos) {
      if (rank < plan.beam && s.ended + ended_now < plan.beam) record[ended_now++].ended = entry;
    } else if (live < plan.beam) {
      s.next[live++] = entry;
    }
  }
  s.ended += ended_now;
  if (live == 0 && s.ended == 0) record[0].ended.token = kNothingPossible;
  s.live = s.ended == plan.beam ? 0 : live;
  for (int i = 0; i < s.live; ++i) record[i].next = s.next[i];
}

// One step of search `number`: ranks the candidates of its rows, then updates its tables and its
// rows of the record. Between two barriers no thread reads what another one writes.
template <class Team>
LINNET_BOTH void AdvanceSearch(const BeamStepParams& p, int64_t number, BeamScratch& s,
                               const Team& team) {
  const BeamPlan& plan = PlanAt(p.plan, p.plan_stride, number);
  if (plan.beam == 0) return;
  BeamRecord* record = p.record + plan.first_row;
  const BeamEntry nothing = {0, kNoEntry, 0.0f, 0.0f};
  const int live = LiveHypotheses(plan, p.tables);
  int32_t* counts = p.tables.counts + 2 * plan.slots[0];
  int broken = live;  // the first hypothesis whose normalizer is not finite
  for (int i = live - 1; i >= 0; --i) {
    if (!IsFinite(p.log_normalizers[plan.first_row + i])) broken = i;
  }
  const int each = 2 * plan.beam + 1;
  const int total = broken < live ? 0 : live * each;
  for (int i = team.index(); i < plan.beam; i += team.size()) record[i] = {nothing, nothing};
  for (int i = team.index(); i < 2 * plan.beam; i += team.size()) s.best[i].token = -1;
  for (int i = team.index(); i < total; i += team.size()) {
    s.all[i] = ReadCandidate(p, plan, i / each, i % each);
  }
  if (team.index() == 0) s.ended = plan.position == 0 ? 0 : counts[1];
  team.Sync();
  if (live == 0) return;

  // The rank of a candidate is the number of better ones: no two candidates compare equal.
  for (int i = team.index(); i < total; i += team.size()) {
    if (s.all[i].token < 0) continue;
    int rank = 0;
    for (int j = 0; j < total; ++j) rank += s.all[j].token >= 0 && Better(s.all[j], s.all[i]);
    if (rank < 2 * plan.beam) s.best[rank] = s.all[i];
  }
  team.Sync();

  if (team.index() == 0) {
    if (broken < live) {
      s.live = 0;
      record[0].ended = {broken, kNoProbabilities, p.log_normalizers[plan.first_row + broken], 0};
    } else {
      PickNext(plan, p.special, s, record);
    }
    for (int i = 0; i < s.live; ++i) {
      const int32_t state = GrammarState(plan, p.tables, plan.slots[s.next[i].parent]);
      // A target begins after the silent tokens.
      s.states[i] = plan.silent != 0 ? 0 : NextState(p.grammar, state, s.next[i].token);
    }
    counts[0] = s.live;
    counts[1] = s.ended;
  }
  team.Sync();

  const int64_t reach = p.tables.reach;
  for (int64_t at = team.index(); at < s.live * reach; at += team.size()) {
    const int64_t i = at / reach, j = at % reach;
    const int32_t slot = plan.slots[i];
    const int64_t parent_row = plan.first_row + s.next[i].parent;
    p.tables.backpointers[slot * reach + j] =
        j == 0 ? slot : p.backpointers[parent_row * reach + j - 1];
    if (j > 0) continue;
    p.tables.tokens[slot] = s.next[i].token;
    p.tables.sums[slot] = s.next[i].sum;
    p.tables.states[slot] = s.states[i];
  }
  if (!ForbidsRepeats(plan)) return;
  const int64_t grown = plan.position + 2;  // entries of a history, with the start token
  for (int64_t at = team.index(); at < s.live * grown; at += team.size()) {
    const int64_t i = at / grown, j = at % grown;
    int32_t* to = const_cast<int32_t*>(HistoryAt(p.tables, plan.position + 1, plan.slots[i]));
    to[j] = j == grown - 1 ? s.next[i].token
            : j == 0       ? p.special.start
                           : HistoryAt(p.tables, plan.position, plan.slots[s.next[i].parent])[j];
  }
}

}  // namespace linnet::ops
