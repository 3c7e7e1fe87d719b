#include "model/runtime/search/row_edit.h"

#include <algorithm>
#include <limits>

namespace linnet::model {
namespace {

// Max number of tokens of ForbidUnlikely among a row's highest, above which the search needs the
// whole row.
constexpr int kMaxUnlikelyAmongBest = 8;
// Max number of a row's highest logits that a search asks for. All rows of a step have room for as
// many as one of them needs; beyond this the whole rows are cheaper.
constexpr int kMaxBest = 1024;

// Lists of byte pieces and other special tokens are short and have low ids, so that the bounds of a
// list decide for most tokens.
bool Contains(std::span<const TokenId> ascending, TokenId token) {
  return !ascending.empty() && token <= ascending.back() && token >= ascending.front() &&
         std::binary_search(ascending.begin(), ascending.end(), token);
}

bool ContainsAny(std::span<const std::span<const TokenId>> lists, TokenId token) {
  return std::ranges::any_of(lists, [token](auto list) { return Contains(list, token); });
}

void SortUnique(std::vector<TokenId>& tokens) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
}

}  // namespace

void RowEdit::Force(TokenId token, bool silent) {
  forced_ = token;
  silent_ = silent;
}

void RowEdit::Forbid(std::span<const TokenId> tokens) {
  forbidden_.insert(forbidden_.end(), tokens.begin(), tokens.end());
}

void RowEdit::AllowOnly(std::span<const TokenId> tokens) {
  allowed_ = tokens;
  needs_all_ = true;
}

void RowEdit::Offer(std::span<const TokenId> tokens) {
  offered_.insert(offered_.end(), tokens.begin(), tokens.end());
}

// Sorts changes by token and joins those of the same token.
void RowEdit::JoinAdjustments() {
  std::ranges::sort(adjusted_, {}, &Adjustment::token);
  size_t kept = 0;
  for (size_t i = 0; i < adjusted_.size(); ++i) {
    const Adjustment& next = adjusted_[i];
    if (kept == 0 || adjusted_[kept - 1].token != next.token) {
      adjusted_[kept++] = next;
      continue;
    }
    Adjustment& joined = adjusted_[kept - 1];
    joined.logit_factor *= next.logit_factor;
    joined.score_factor *= next.score_factor;
    joined.penalty += next.penalty;
  }
  adjusted_.resize(kept);
}

void RowEdit::NeedLogit(TokenId token) {
  if (also_ != kNoToken && also_ != token) needs_all_ = true;
  also_ = token;
}

void RowEdit::Clear() {
  forced_ = also_ = kNoToken;
  silent_ = in_character_ = needs_all_ = false;
  forbidden_.clear();
  exempt_.clear();
  offered_.clear();
  unlikely_.clear();
  allowed_.reset();
  adjusted_.clear();
  has_set_aside_ = false;
  unlikely_count_ = 0;
}

void RowEdit::Finish() {
  JoinAdjustments();
  if (forced_ != kNoToken) {
    forbidden_.clear();
    unlikely_.clear();
    allowed_.reset();
    return;
  }
  SortUnique(forbidden_);
  unlikely_count_ = CountUnlikely();
  std::erase_if(adjusted_, [this](const Adjustment& adjustment) {
    const TokenId token = adjustment.token;
    return Contains(forbidden_, token) || IsUnlikely(token) || !IsAllowed(token);
  });
}

bool RowEdit::IsUnlikely(TokenId token) const {
  return ContainsAny(unlikely_, token) && std::ranges::find(exempt_, token) == exempt_.end();
}

int RowEdit::CountUnlikely() const {
  constexpr int kTooMany = kMaxUnlikelyAmongBest + 1;
  int count = 0;
  for (size_t list = 0; list < unlikely_.size(); ++list) {
    const std::span<const TokenId> tokens = unlikely_[list];
    if (std::ssize(tokens) - std::ssize(forbidden_) - std::ssize(exempt_) >= kTooMany)
      return kTooMany;
    for (TokenId token : tokens) {
      if (Contains(forbidden_, token) || !IsUnlikely(token)) continue;
      if (ContainsAny(std::span(unlikely_).first(list), token)) continue;  // counted
      if (++count == kTooMany) return count;
    }
  }
  return count;
}

bool RowEdit::IsAllowed(TokenId token) const {
  return !allowed_.has_value() || Contains(*allowed_, token);
}

bool RowEdit::IsSetAside(TokenId token) const {
  return Contains(forbidden_, token) || IsUnlikely(token) || !IsAllowed(token) ||
         FindAdjustment(token) != nullptr;
}

std::span<const TokenId> RowEdit::set_aside() const {
  if (has_set_aside_) return set_aside_;
  has_set_aside_ = true;
  set_aside_.clear();
  for (const std::span<const TokenId> tokens : unlikely_)
    set_aside_.insert(set_aside_.end(), tokens.begin(), tokens.end());
  for (TokenId token : exempt_) std::erase(set_aside_, token);
  set_aside_.insert(set_aside_.end(), forbidden_.begin(), forbidden_.end());
  for (const Adjustment& adjustment : adjusted_) set_aside_.push_back(adjustment.token);
  SortUnique(set_aside_);
  return set_aside_;
}

const Adjustment* RowEdit::FindAdjustment(TokenId token) const {
  const auto found = std::ranges::lower_bound(adjusted_, token, {}, &Adjustment::token);
  return found == adjusted_.end() || found->token != token ? nullptr : &*found;
}

bool RowEdit::IsForbidden(TokenId token) const {
  return IsSetAside(token) && FindAdjustment(token) == nullptr;
}

std::optional<Candidate> RowEdit::CandidateFor(const LogitRow& row, TokenId token) const {
  const std::optional<float> logit = row.Logit(token);
  if (!logit.has_value()) return std::nullopt;
  const Adjustment* adjustment = FindAdjustment(token);
  return adjustment == nullptr ? row.Extend(token, *logit) : row.Extend(*adjustment, *logit);
}

RowNeed RowEdit::Need(int wanted) const {
  if (forced_ != kNoToken) return {.also = forced_};
  if (needs_all_ || wanted == 0 || wanted > kMaxBest) return {.all = true};
  // Each token that is set aside may be among the highest.
  const int few = static_cast<int>(std::ssize(forbidden_) + std::ssize(adjusted_));
  const TokenId also = also_ != kNoToken && IsForbidden(also_) ? kNoToken : also_;
  return {.best = wanted + few + std::min(unlikely_count_, kMaxUnlikelyAmongBest), .also = also};
}

bool RowEdit::Suffices(const RowLogits& row, int wanted) const {
  if (row.tokens.empty() || forced_ != kNoToken || needs_all_ ||
      unlikely_count_ <= kMaxUnlikelyAmongBest)
    return true;
  int allowed = 0, found = 0;
  for (size_t at = 0; at < row.tokens.size() && allowed < wanted; ++at) {
    if (!(row.logits[at] > std::numeric_limits<float>::lowest())) continue;
    ++found;
    allowed += IsSetAside(row.tokens[at]) ? 0 : 1;
  }
  return allowed >= wanted || found < Need(wanted).best;  // the vocabulary has no more
}

}  // namespace linnet::model
