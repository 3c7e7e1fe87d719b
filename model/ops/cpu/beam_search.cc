#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/ops/cpu/parallel.h"
#include "model/ops/search/beam_body.h"

namespace linnet::ops {
namespace {

// Adds the tokens that would repeat an n-gram of hypothesis i.
void AddRepeats(const BeamStepParams& p, const BeamPlan& plan, int i,
                std::vector<int32_t>& excluded) {
  const int32_t state = GrammarState(plan, p.tables, plan.slots[i]);
  if (!ForbidsRepeats(plan) || InCharacter(p.grammar, state)) return;
  const int32_t* history =
      plan.position == 0 ? &p.special.start : HistoryAt(p.tables, plan.position, plan.slots[i]);
  ForRepeats(plan, p.special, history, 0, 1, [&](int32_t token) { excluded.push_back(token); });
}

// First half of a step: the highest logits of each row (best_logits) that are not forbidden.
class Rows {
 public:
  explicit Rows(const BeamStepParams& p)
      : p_(p), excluded_(p.rows), counts_(p.rows), also_(p.rows, -1), temperatures_(p.rows, 1.0f) {}

  void Find() {
    for (int64_t row = 0; row < p_.rows; ++row) Ask(row);
    const int64_t width = *std::max_element(counts_.begin(), counts_.end()) + 1;
    std::vector<float> logits(p_.rows * width);
    std::vector<int32_t> tokens(p_.rows * width);
    BestLogitsCpu({.weight = nullptr,
                   .given = static_cast<const float*>(p_.logits),
                   .x = nullptr,
                   .bias = nullptr,
                   .counts = counts_.data(),
                   .also = also_.data(),
                   .temperatures = temperatures_.data(),
                   .logits = logits.data(),
                   .found = tokens.data(),
                   .log_normalizers = p_.log_normalizers,
                   .rows = p_.rows,
                   .tokens = p_.vocabulary,
                   .width = width});
    for (int64_t row = 0; row < p_.rows; ++row) {
      Keep(row, logits.data() + row * width, tokens.data() + row * width);
    }
  }

 private:
  void Ask(int64_t row) {
    const int32_t number = PlanAt(p_.plan, p_.plan_stride, row).search;
    if (number < 0) return;
    const BeamPlan& plan = PlanAt(p_.plan, p_.plan_stride, number);
    const int i = static_cast<int>(row) - plan.first_row;
    if (i >= LiveHypotheses(plan, p_.tables)) return;
    temperatures_[row] = plan.temperature;
    also_[row] = ExtraToken(plan, p_.special);
    if (plan.forced >= 0) return;
    AddRepeats(p_, plan, i, excluded_[row]);
    for (int32_t token : {p_.special.pad, p_.special.eos, p_.special.unk}) {
      if (IsSetAside(plan, p_.special, token)) excluded_[row].push_back(token);
    }
    const int32_t state = GrammarState(plan, p_.tables, plan.slots[i]);
    for (int32_t token = 0; p_.grammar.classes != nullptr && token < p_.vocabulary; ++token) {
      if (IsForbiddenByGrammar(p_.grammar, plan, state, token)) excluded_[row].push_back(token);
    }
    // Each excluded token may be among the highest, so one more logit is requested for each.
    std::sort(excluded_[row].begin(), excluded_[row].end());
    counts_[row] = static_cast<int32_t>(
        std::min<int64_t>(2 * plan.beam + std::ssize(excluded_[row]), p_.vocabulary));
  }

  void Keep(int64_t row, const float* logits, const int32_t* tokens) {
    const std::vector<int32_t>& excluded = excluded_[row];
    const auto is_excluded = [&](int32_t token) {
      return std::binary_search(excluded.begin(), excluded.end(), token);
    };
    int kept = 0;
    float* found = p_.found + row * kMaxFound;
    int32_t* found_tokens = p_.found_tokens + row * kMaxFound;
    for (int i = 0; i < counts_[row] && kept < kMaxFound; ++i) {
      if (tokens[i] < 0 || is_excluded(tokens[i])) continue;
      found[kept] = logits[i];
      found_tokens[kept++] = tokens[i];
    }
    std::fill(found_tokens + kept, found_tokens + kMaxFound, -1);
    // The unknown token is in `also`, unless it is forbidden.
    const bool repeats = std::count(excluded.begin(), excluded.end(), also_[row]) > 1;
    p_.also[row] =
        also_[row] < 0 || repeats ? -std::numeric_limits<float>::infinity() : logits[counts_[row]];
  }

  const BeamStepParams& p_;
  std::vector<std::vector<int32_t>> excluded_;  // by row
  std::vector<int32_t> counts_, also_;
  std::vector<float> temperatures_;
};

}  // namespace

void BeamInputsCpu(const BeamInputsParams& p) {
  for (int64_t row = 0; row < p.rows; ++row) FillRow(p, row, SingleThread());
}

void BeamStepCpu(const BeamStepParams& p) {
  Rows(p).Find();
  // The cost is that of comparing all pairs of a beam's candidates.
  ParallelFor(p.rows, 20000, [&](int64_t begin, int64_t end) {
    static thread_local BeamScratch scratch;
    for (int64_t number = begin; number < end; ++number) {
      AdvanceSearch(p, number, scratch, SingleThread());
    }
  });
}

}  // namespace linnet::ops
