#include "model/runtime/search/sampler.h"

#include <cmath>
#include <numeric>
#include <optional>

#include "model/runtime/search/sampling.h"
#include "proto/status_macros.h"

namespace linnet::model {

Sampler::Sampler(const SearchSpec& spec)
    : Search(spec, spec.options, /*device_can_choose=*/false),
      eos_(spec.special.eos),
      numbers_(spec.options.beam_size) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

absl::Status Sampler::Choose(std::span<const LogitRow> rows, std::vector<Candidate>& candidates) {
  std::vector<int> left;
  if (!known().empty()) {  // the hypotheses are one as long as nothing is drawn
    ASSIGN_OR_RETURN(const Candidate forced, Forced(rows.front()));
    if (!std::isfinite(forced.sum)) return NothingPossible();
    candidates.push_back(forced);
    return absl::OkStatus();
  }
  for (int i = 0; i < std::ssize(numbers_); ++i) {
    const LogitRow& row = rows[rows.size() == 1 ? 0 : i];  // the first draw makes the hypotheses
    const RowEdit& rules = edit(row.parent);
    std::optional<Candidate> next;
    if (rules.forced() != kNoToken) {
      ASSIGN_OR_RETURN(next, Forced(row));
    } else {
      next = DrawToken(row,
                       {.excluded = rules.set_aside(),
                        .adjusted = rules.adjusted(),
                        .top_k = options().top_k,
                        .top_p = options().top_p,
                        .min_p = options().min_p},
                       UniformDraw(options().seed.value_or(0), numbers_[i], steps()));
    }
    if (!next.has_value() || !std::isfinite(next->sum)) return NothingPossible();
    if (next->token != eos_) left.push_back(numbers_[i]);
    candidates.push_back(*next);
  }
  numbers_ = std::move(left);
  return absl::OkStatus();
}

}  // namespace linnet::model
