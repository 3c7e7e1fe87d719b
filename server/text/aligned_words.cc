#include "server/text/aligned_words.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>

#include "model/runtime/text/white_space.h"

namespace linnet::server {
namespace {

// Max entries of a table of edits: 1 MiB.
constexpr size_t kMaxEdits = 1 << 18;

// ends[i] is the number of bytes of the restored text that tokens [0, i] produce: the longest
// common prefix of the decoded text and that of their own. Never decreases.
std::vector<size_t> Ends(const model::Tokenizer& tokenizer, std::span<const model::TokenId> tokens,
                         const model::RestoredText& restored, absl::string_view capitals) {
  const std::string text = tokenizer.Decode(tokens, capitals);
  std::vector<size_t> ends;
  size_t end = 0;
  for (size_t count = 1; count <= tokens.size(); ++count) {
    const std::string start = tokenizer.Decode(tokens.first(count), capitals);
    const auto common = std::mismatch(text.begin(), text.end(), start.begin(), start.end());
    end = std::max<size_t>(end, common.first - text.begin());
    ends.push_back(restored.PlaceOf(static_cast<int>(end)));
  }
  return ends;
}

using Words = std::span<const absl::string_view>;

// Matches each word of `decoded` to a word of `written` by minimum edit distance (Levenshtein on
// words); an inserted word is matched to its neighbour. `decoded` is not empty.
std::vector<size_t> MatchByEdits(Words decoded, Words written) {
  const size_t n = decoded.size(), m = written.size();
  std::vector<size_t> matches(n);
  std::vector<std::vector<int>> edits(n + 1, std::vector<int>(m + 1));
  for (size_t i = 0; i <= n; ++i) edits[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= m; ++j) edits[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= n; ++i) {
    for (size_t j = 1; j <= m; ++j) {
      edits[i][j] = std::min({edits[i - 1][j - 1] + (decoded[i - 1] == written[j - 1] ? 0 : 1),
                              edits[i - 1][j] + 1, edits[i][j - 1] + 1});
    }
  }
  size_t i = n, j = m;
  while (i > 0) {
    if (j > 0 && edits[i][j] == edits[i - 1][j - 1] + (decoded[i - 1] == written[j - 1] ? 0 : 1)) {
      matches[--i] = --j;
    } else if (edits[i][j] == edits[i - 1][j] + 1) {
      matches[--i] = std::min(j, m - 1);
    } else {
      --j;
    }
  }
  return matches;
}

// Matches each word of `decoded` to one of `written`: equal ones at the start and at the end, and
// those between by their edits. So many that the table of the edits would be large, as a copy may
// have, are matched in order.
std::vector<size_t> Match(Words decoded, Words written) {
  const size_t n = decoded.size(), m = written.size();
  std::vector<size_t> matches(n);
  for (size_t i = 0; i < n; ++i) matches[i] = m == 0 ? i : std::min(i, m - 1);
  if (n == m || m == 0) return matches;
  const size_t shorter = std::min(n, m);
  size_t same = 0, last = 0;
  while (same < shorter && decoded[same] == written[same]) ++same;
  while (last < shorter - same && decoded[n - 1 - last] == written[m - 1 - last]) {
    ++last;
    matches[n - last] = m - last;
  }
  const Words left = decoded.subspan(same, n - same - last);
  const Words right = written.subspan(same, m - same - last);
  if (left.empty() || (left.size() + 1) * (right.size() + 1) > kMaxEdits) return matches;
  if (right.empty()) {  // these were inserted
    std::fill_n(matches.begin() + same, left.size(), std::min(same, m - 1));
    return matches;
  }
  const std::vector<size_t> between = MatchByEdits(left, right);
  for (size_t i = 0; i < between.size(); ++i) matches[same + i] = same + between[i];
  return matches;
}

// Makes one word of those that overlap the same range. Both are in order.
template <typename Word, typename Range>
void JoinWithin(std::vector<Word>& words, const std::vector<Range>& ranges) {
  std::vector<Word> joined;
  auto range = ranges.begin();
  const Range* last = nullptr;  // that of the last word
  for (const Word& word : words) {
    while (range != ranges.end() && range->end <= word.begin) ++range;
    const bool within = range != ranges.end() && range->begin < word.end;
    if (within && last == &*range) {
      joined.back().end = word.end;
      if constexpr (requires { word.end_token; }) joined.back().end_token = word.end_token;
    } else {
      joined.push_back(word);
    }
    last = within ? &*range : nullptr;
  }
  words = std::move(joined);
}

}  // namespace

std::vector<WordRange> SplitUnits(absl::string_view text, WordUnit unit) {
  std::vector<WordRange> words;
  for (const absl::string_view word :
       unit == WordUnit::kPiece ? model::PiecesOf(text) : model::WordsOf(text)) {
    const auto begin = static_cast<int>(word.data() - text.data());
    words.push_back({begin, begin + static_cast<int>(word.size())});
  }
  return words;
}

std::vector<AlignedWord> AlignedWords(const model::Tokenizer& tokenizer,
                                      std::span<const model::TokenId> tokens,
                                      const model::RestoredText& restored,
                                      absl::string_view capitals, WordUnit unit) {
  const std::vector<size_t> ends = Ends(tokenizer, tokens, restored, capitals);
  const auto start = [&](size_t i) { return i == 0 ? 0 : ends[i - 1]; };
  std::vector<AlignedWord> words;
  size_t token = 0;  // the first that produces some of the word, or starts a character of it
  for (const auto& [begin, end] : SplitUnits(restored.text, unit)) {
    while (token + 1 < ends.size() && ends[token] <= begin && start(token) < begin) ++token;
    size_t end_token = token;
    while (end_token < ends.size() && (end_token == token || start(end_token) < end)) ++end_token;
    words.push_back({begin, end, token, end_token});
  }
  // A span is one piece, as it is in the source.
  if (unit == WordUnit::kPiece) JoinWithin(words, restored.edits);
  return words;
}

std::vector<AlignedWord> SourceWords(const model::Tokenizer& tokenizer,
                                     std::span<const model::TokenId> tokens, absl::string_view text,
                                     std::span<const model::ProtectedSpan> spans,
                                     absl::string_view capitals, WordUnit unit) {
  // The model reads a token in place of such a span, which is one word therefore.
  std::vector<model::ProtectedSpan> stand_ins(spans.begin(), spans.end());
  std::erase_if(stand_ins, [](const model::ProtectedSpan& span) { return span.stand_in < 0; });
  const model::RestoredText restored =
      tokenizer.Restore(tokenizer.Decode(tokens, capitals), spans, text, /*once=*/false);
  const std::string& decoded = restored.text;
  std::vector<AlignedWord> words = AlignedWords(tokenizer, tokens, restored, capitals, unit);
  JoinWithin(words, restored.edits);
  std::vector<WordRange> written = SplitUnits(text, unit);
  JoinWithin(written, stand_ins);
  std::vector<absl::string_view> decoded_words, written_words;
  for (const AlignedWord& word : words)
    decoded_words.push_back(absl::string_view(decoded).substr(word.begin, word.end - word.begin));
  for (const WordRange& word : written)
    written_words.push_back(text.substr(word.begin, word.end - word.begin));
  if (written.empty()) return {};
  const std::vector<size_t> matches = Match(decoded_words, written_words);
  for (size_t i = 0; i < words.size(); ++i) {
    words[i].begin = written[matches[i]].begin;
    words[i].end = written[matches[i]].end;
  }
  return words;
}

WordAttention::WordAttention(std::span<const AlignedWord> source, size_t source_tokens,
                             std::span<const float> attention)
    : attention_(attention), source_tokens_(source_tokens), word_of_(source_tokens, -1) {
  if (attention.empty()) return;
  // A source token in two words counts for the first.
  for (size_t i = 0; i < source.size(); ++i) {
    for (size_t token = source[i].first_token; token < source[i].end_token; ++token) {
      if (word_of_[token] < 0) word_of_[token] = static_cast<int>(i);
    }
  }
  std::map<WordRange, int> numbers;
  const auto range = [&](int word) { return WordRange{source[word].begin, source[word].end}; };
  for (const int word : word_of_) {
    if (word >= 0) numbers.emplace(range(word), 0);
  }
  for (auto& [word, number] : numbers) {
    number = static_cast<int>(source_.size());
    source_.push_back(word);
  }
  for (int& word : word_of_) {
    if (word >= 0) word = numbers[range(word)];
  }
}

std::vector<float> WordAttention::SourceWeights(const AlignedWord& target) const {
  std::vector<double> sums(source_.size());
  for (size_t t = target.first_token; t < target.end_token; ++t) {
    for (size_t s = 0; s < source_tokens_ && !attention_.empty(); ++s) {
      if (word_of_[s] >= 0) sums[word_of_[s]] += attention_[t * source_tokens_ + s];
    }
  }
  std::vector<float> weights;
  for (const double sum : sums) {
    weights.push_back(static_cast<float>(sum / (target.end_token - target.first_token)));
  }
  return weights;
}

void AddWordAlignments(
    std::span<const WordRange> source, std::span<const float> weights, int source_begin,
    const AlignedWord& target, int target_begin,
    google::protobuf::RepeatedPtrField<linnet::v1::WordAlignment>& word_alignments) {
  std::vector<size_t> sorted(source.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  for (size_t i = 0; i < sorted.size() && (i == 0 || weights[sorted[i]] >= kMinAlignmentWeight);
       ++i) {
    linnet::v1::WordAlignment& word_alignment = *word_alignments.Add();
    word_alignment.set_source_begin(source_begin + source[sorted[i]].begin);
    word_alignment.set_source_end(source_begin + source[sorted[i]].end);
    word_alignment.set_target_begin(target_begin + target.begin);
    word_alignment.set_target_end(target_begin + target.end);
    word_alignment.set_weight(weights[sorted[i]]);
  }
}

}  // namespace linnet::server
