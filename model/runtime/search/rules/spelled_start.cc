#include "model/runtime/search/spelled_start.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "model/runtime/search/rules.h"

namespace linnet::model {
namespace {

class SpelledStartRule : public Rule {
 public:
  SpelledStartRule(std::shared_ptr<const SpelledStart> start, int prefix)
      : start_(std::move(start)), prefix_(prefix), spelled_(1, 0) {}

  void Apply(const LiveHypothesis& hypothesis, RowEdit& edit) override {
    if (std::ssize(hypothesis.target) < prefix_) return;  // the prefix is forced
    const int spelled = spelled_[hypothesis.number];
    if (spelled < std::ssize(start_->places)) edit.AllowOnly(start_->places[spelled].tokens);
  }

  void Follow(std::span<const Continuation> live) override {
    next_.clear();
    for (const Continuation& each : live) {
      const int spelled = spelled_[each.parent];
      const bool spells = std::ssize(each.target) > prefix_ && spelled < std::ssize(start_->places);
      next_.push_back(spells ? After(start_->places[spelled], each.token) : spelled);
    }
    spelled_.swap(next_);
  }

 private:
  static int After(const SpelledStart::Place& place, TokenId token) {
    const auto found = std::ranges::lower_bound(place.tokens, token);
    return place.spelled[found - place.tokens.begin()];
  }

  std::shared_ptr<const SpelledStart> start_;
  int prefix_;                // tokens before it
  std::vector<int> spelled_;  // bytes, per live hypothesis
  std::vector<int> next_;     // of one call; keeps its memory
};

}  // namespace

std::unique_ptr<Rule> NewSpelledStart(const SearchSpec& spec) {
  if (spec.start == nullptr || spec.target.has_value()) return nullptr;
  return std::make_unique<SpelledStartRule>(spec.start, static_cast<int>(spec.prefix.size()));
}

}  // namespace linnet::model
