#include "tests/runtime/search/search_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>

namespace linnet::model {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Beam {
  std::vector<TokenId> tokens = {};  // with the leading start token
  std::vector<float> scores = {};
  float sum = kMinusInfinity;
};

struct Entry {
  float sum;
  float score;
  int beam;
  TokenId token;
  float logit;
};

std::set<std::vector<TokenId>> NGrams(const std::vector<TokenId>& tokens, int n) {
  std::set<std::vector<TokenId>> grams;
  for (int i = 0; i + n <= std::ssize(tokens); ++i) {
    grams.insert({tokens.begin() + i, tokens.begin() + i + n});
  }
  return grams;
}

// True if `target`, which begins with the start token, and `next` end with the same tokens more
// than `times` times in a row. A third or later time may lack its last token, if it has two or
// more.
bool EndsInARow(const std::vector<TokenId>& target, TokenId next, int times) {
  std::vector<TokenId> tokens(target.begin() + 1, target.end());
  tokens.push_back(next);
  for (int64_t n = 1; times > 0 && n <= 16; ++n) {
    const int64_t length = times > 1 && n > 1 ? n * times + n - 1 : n * times + n;
    if (length > std::ssize(tokens)) continue;
    bool same = true;
    for (auto token = tokens.end() - length; token != tokens.end() - n; ++token) {
      same = same && token[0] == token[n];
    }
    if (same) return true;
  }
  return false;
}

// The bytes of the unfinished character at the end of the target, which begins with the start
// token.
std::vector<int> OpenBytes(const std::vector<TokenId>& tokens, const TokenSpelling& spelling) {
  std::vector<int> open;
  for (size_t i = 1; i < tokens.size(); ++i) {
    const int spelled = spelling[tokens[i]];
    if (spelled >= 0) open.push_back(spelled);
    if (spelled < 0 || MissingBytes(open) == 0) open.clear();
  }
  return open;
}

bool MayFollow(const std::vector<TokenId>& tokens, TokenId token, int left,
               const TokenSpelling& spelling) {
  std::vector<int> open = OpenBytes(tokens, spelling);
  const int spelled = spelling[token];
  if (spelled == kSpellsText || spelled == kSpellsBlank || spelled == kSpellsEnd)
    return open.empty();
  if (spelled == kSpellsControl) return false;
  if (spelled == kSpellsFirstControl) {
    return std::all_of(tokens.begin() + 1, tokens.end(),
                       [&](TokenId before) { return spelling[before] == kSpellsBlank; });
  }
  const bool begins = open.empty();
  open.push_back(spelled);
  return MissingBytes(open) >= 0 && (!begins || MissingBytes(open) <= left);
}

std::vector<float> MaskedScores(const Beam& beam, int step, const SearchOptions& options,
                                const SpecialTokens& special, const std::vector<TokenId>& prefix,
                                const std::vector<float>& logits, const TokenSpelling& spelling,
                                const ScoreRule& rule) {
  const float normalizer = LogNormalizer(logits, options.temperature);
  std::vector<float> scores;
  for (float logit : logits) scores.push_back(logit / options.temperature - normalizer);
  for (float& score : scores) {
    if (std::isnan(score)) score = kMinusInfinity;
  }
  if (rule != nullptr) rule(beam.tokens, logits, scores);
  scores[special.pad] = kMinusInfinity;
  scores[special.unk] -= options.unknown_penalty;
  const auto keep_only = [&](TokenId only) {
    for (TokenId token = 0; token < std::ssize(scores); ++token) {
      if (token != only) scores[token] = kMinusInfinity;
    }
  };
  if (step >= options.max_target_tokens) {
    keep_only(special.eos);
  } else if (step < std::ssize(prefix)) {
    keep_only(prefix[step]);
  } else {
    if (step < options.min_target_tokens) scores[special.eos] = kMinusInfinity;
    for (TokenId token = 0; !spelling.empty() && token < std::ssize(scores); ++token) {
      if (!MayFollow(beam.tokens, token, options.max_target_tokens - step - 1, spelling))
        scores[token] = kMinusInfinity;
    }
    const bool in_character = !spelling.empty() && !OpenBytes(beam.tokens, spelling).empty();
    const int n = in_character ? 0 : options.no_repeat_ngram_size;
    if (n > 0 && step >= n - 1) {
      const std::set<std::vector<TokenId>> seen = NGrams(beam.tokens, n);
      for (TokenId token = 0; token < std::ssize(scores); ++token) {
        std::vector<TokenId> gram(beam.tokens.end() - (n - 1), beam.tokens.end());
        gram.push_back(token);
        if (token != special.eos && seen.count(gram)) scores[token] = kMinusInfinity;
      }
    }
    for (TokenId token = 0; token < std::ssize(scores); ++token) {
      if (!in_character && token != special.eos &&
          EndsInARow(beam.tokens, token, options.max_ngram_repeats))
        scores[token] = kMinusInfinity;
    }
  }
  return scores;
}

}  // namespace

int MissingBytes(const std::vector<int>& bytes) {
  if (bytes.empty() || bytes[0] < 0x80) return bytes.size() <= 1 ? 0 : -1;
  const int length = bytes[0] >= 0xF8   ? 0
                     : bytes[0] >= 0xF0 ? 4
                     : bytes[0] >= 0xE0 ? 3
                     : bytes[0] >= 0xC0 ? 2
                                        : 0;
  const int missing = length - static_cast<int>(bytes.size());
  if (length == 0 || missing < 0) return -1;
  // The code points with these first bytes, and those with that many bytes.
  int64_t low = bytes[0] & (0x7F >> length);
  for (size_t i = 1; i < bytes.size(); ++i) {
    if ((bytes[i] & 0xC0) != 0x80) return -1;
    low = low << 6 | (bytes[i] & 0x3F);
  }
  low <<= 6 * missing;
  int64_t high = low + (int64_t{1} << 6 * missing) - 1;
  constexpr int64_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};
  constexpr int64_t kHighest[] = {0, 0, 0x7FF, 0xFFFF, 0x10FFFF};
  low = std::max(low, kLowest[length]);
  high = std::min(high, kHighest[length]);
  const bool only_surrogates = low >= 0xD800 && high <= 0xDFFF;
  return low <= high && !only_surrogates ? missing : -1;
}

float LogNormalizer(const std::vector<float>& logits, float temperature) {
  double sum = 0;
  for (float logit : logits) {
    if (!std::isnan(logit)) sum += std::exp(static_cast<double>(logit / temperature));
  }
  return static_cast<float>(std::log(sum));
}

std::vector<Hypothesis> ReferenceSearch(const SearchOptions& options, const SpecialTokens& special,
                                        const std::vector<TokenId>& prefix, const ToyModel& model,
                                        const TokenSpelling& spelling, const ScoreRule& rule) {
  // Always beam_size rows; unused rows, at the start all but the first, have the sum minus
  // infinity.
  std::vector<Beam> beams(options.beam_size, Beam{.tokens = {special.start}});
  beams[0].sum = 0;
  std::vector<Hypothesis> ended;
  for (int step = 0; step <= options.max_target_tokens; ++step) {
    std::vector<Entry> entries;
    for (int b = 0; b < options.beam_size; ++b) {
      if (beams[b].sum == kMinusInfinity) continue;
      const std::vector<float> logits = model({beams[b].tokens.begin() + 1, beams[b].tokens.end()});
      const std::vector<float> scores =
          MaskedScores(beams[b], step, options, special, prefix, logits, spelling, rule);
      for (TokenId token = 0; token < std::ssize(scores); ++token) {
        if (scores[token] == kMinusInfinity) continue;
        entries.push_back({beams[b].sum + scores[token], scores[token], b, token, logits[token]});
      }
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tuple(b.sum, a.beam, b.logit) < std::tuple(a.sum, b.beam, a.logit);
    });
    if (std::ssize(entries) > 2 * options.beam_size) entries.resize(2 * options.beam_size);

    std::vector<Beam> next;
    for (int rank = 0; rank < std::ssize(entries); ++rank) {
      const Entry& entry = entries[rank];
      Beam beam = beams[entry.beam];
      beam.tokens.push_back(entry.token);
      beam.scores.push_back(entry.score);
      beam.sum = entry.sum;
      if (entry.token != special.eos) {
        if (std::ssize(next) < options.beam_size) next.push_back(beam);
        continue;
      }
      if (rank >= options.beam_size || std::ssize(ended) == options.beam_size) continue;
      const float length = static_cast<float>(beam.scores.size());
      ended.push_back({.tokens = {beam.tokens.begin() + 1, beam.tokens.end()},
                       .token_scores = beam.scores,
                       .score = options.normalize_scores
                                    ? beam.sum / std::pow(length, options.length_penalty)
                                    : beam.sum,
                       .ended_by_limit = step == options.max_target_tokens});
    }
    if (std::ssize(ended) == options.beam_size) break;
    next.resize(options.beam_size, Beam{.tokens = {special.start}});
    beams = next;
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return ended;
}

}  // namespace linnet::model
