#include "model/runtime/tokenizer/bpe.h"

#include <functional>
#include <queue>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/runtime/text/characters.h"
#include "model/runtime/text/segmenter.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

constexpr absl::string_view kEndOfWord = "</w>";
constexpr absl::string_view kVersion = "#version:";

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

absl::string_view Trimmed(absl::string_view line) {
  while (absl::ConsumeSuffix(&line, " ") || absl::ConsumeSuffix(&line, "\r")) continue;
  while (absl::ConsumePrefix(&line, " ")) continue;
  return line;
}

// A symbol of the word, in a doubly linked list.
struct Part {
  int begin = 0;
  int end = 0;
  int symbol = -1;  // -1: it is in no merge
  int previous = -1;
  int next = -1;
};

// Two neighbours that can be merged. Stale once either of them has been merged.
struct CandidateMerge {
  int rank = 0;
  int part = 0;  // the left one
  int left = 0;  // the symbols they had
  int right = 0;
  int merged = 0;

  bool operator>(const CandidateMerge& other) const {
    return std::tie(rank, part) > std::tie(other.rank, other.part);
  }
};

}  // namespace

absl::StatusOr<BpeCodes> BpeCodes::Parse(absl::string_view contents) {
  BpeCodes codes;
  while (absl::ConsumeSuffix(&contents, "\n")) continue;
  const std::vector<absl::string_view> lines = PartsOf(contents, '\n');
  size_t first = 0;
  absl::string_view head = Trimmed(lines[0]);
  bool symbol = false;
  if (absl::ConsumePrefix(&head, kVersion)) {
    const absl::string_view version = Trimmed(head);
    if (version != "0.1" && version != "0.2") {
      return absl::FailedPreconditionError(
          absl::StrCat("line 1 says version \"", version, "\", known are 0.1 and 0.2"));
    }
    symbol = version == "0.1";
    first = 1;
  } else {
    symbol = PartsOf(head, ' ').size() != 3;
  }
  codes.word_end_ = symbol ? WordEnd::kSymbol : WordEnd::kInLastCharacter;
  codes.end_ = codes.Intern(kEndOfWord);
  RETURN_IF_ERROR(codes.AddMerges(lines, first, first == 0 && !symbol));
  return codes;
}

absl::StatusOr<BpeCodes> BpeCodes::ParseWithoutWordEnds(absl::string_view contents) {
  BpeCodes codes;
  codes.word_end_ = WordEnd::kNone;
  while (absl::ConsumeSuffix(&contents, "\n")) continue;
  const std::vector<absl::string_view> lines = PartsOf(contents, '\n');
  RETURN_IF_ERROR(codes.AddMerges(lines, absl::StartsWith(lines[0], kVersion) ? 1 : 0, false));
  return codes;
}

absl::Status BpeCodes::AddMerges(const std::vector<absl::string_view>& lines, size_t first,
                                 bool counts) {
  for (size_t i = first; i < lines.size(); ++i) {
    const absl::string_view line = Trimmed(lines[i]);
    std::vector<absl::string_view> parts = PartsOf(line, ' ');
    // fastBPE has counts.
    if (counts && parts.size() == 3 && IsNumber(parts[2])) parts.pop_back();
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "line ", i + 1, " is no merge operation: two symbols with one blank between them"));
    }
    if (FirstInvalidUtf8(line) >= 0) {
      return absl::FailedPreconditionError(absl::StrCat("line ", i + 1, " is not UTF-8"));
    }
    const std::pair<int, int> pair(Intern(parts[0]), Intern(parts[1]));
    // The first line of a repeated pair counts.
    merges_.try_emplace(pair, Merge{.rank = static_cast<int>(i),
                                    .symbol = Intern(absl::StrCat(parts[0], parts[1]))});
  }
  if (merges_.empty()) return absl::FailedPreconditionError("has no merge operations");
  return absl::OkStatus();
}

int BpeCodes::Intern(absl::string_view symbol) {
  return symbols_.try_emplace(symbol, static_cast<int>(symbols_.size())).first->second;
}

int BpeCodes::Find(absl::string_view symbol) const {
  const auto found = symbols_.find(symbol);
  return found == symbols_.end() ? -1 : found->second;
}

void BpeCodes::Split(absl::string_view word, std::vector<absl::string_view>& pieces) const {
  const int size = static_cast<int>(word.size());
  std::vector<Part> parts;
  for (int at = 0; at < size;) {
    const int begin = at;
    at = CharacterAt(word, at).end;
    const absl::string_view character = word.substr(begin, at - begin);
    const bool ends = at == size && word_end_ == WordEnd::kInLastCharacter;
    const int symbol = ends ? Find(absl::StrCat(character, kEndOfWord)) : Find(character);
    parts.push_back({.begin = begin, .end = at, .symbol = symbol});
  }
  if (parts.empty()) return;
  if (word_end_ == WordEnd::kSymbol) parts.push_back({.begin = size, .end = size, .symbol = end_});
  for (int i = 0; i < std::ssize(parts); ++i) {
    parts[i].previous = i - 1;
    parts[i].next = i + 1 < std::ssize(parts) ? i + 1 : -1;
  }

  std::priority_queue<CandidateMerge, std::vector<CandidateMerge>, std::greater<>> queue;
  const auto propose = [&](int part) {
    if (part < 0 || parts[part].next < 0) return;
    const int left = parts[part].symbol;
    const int right = parts[parts[part].next].symbol;
    if (left < 0 || right < 0) return;
    const auto merge = merges_.find(std::pair(left, right));
    if (merge == merges_.end()) return;
    queue.push({.rank = merge->second.rank,
                .part = part,
                .left = left,
                .right = right,
                .merged = merge->second.symbol});
  };
  for (int i = 0; i < std::ssize(parts); ++i) propose(i);

  // Apply one operation to the whole word, left to right, before choosing the next one: its results
  // may be part of an operation with a lower rank.
  std::vector<CandidateMerge> round;
  while (!queue.empty()) {
    round.clear();
    const int rank = queue.top().rank;
    for (; !queue.empty() && queue.top().rank == rank; queue.pop()) round.push_back(queue.top());
    for (const CandidateMerge& candidate : round) {
      Part& left = parts[candidate.part];
      if (left.symbol != candidate.left || left.next < 0 ||
          parts[left.next].symbol != candidate.right) {
        continue;
      }
      Part& right = parts[left.next];
      left.symbol = candidate.merged;
      left.end = right.end;
      left.next = right.next;
      if (left.next >= 0) parts[left.next].previous = candidate.part;
      right.symbol = -1;
      propose(left.previous);
      propose(candidate.part);
    }
  }
  for (int part = 0; part >= 0; part = parts[part].next) {
    const Part& piece = parts[part];
    if (piece.end > piece.begin) {
      pieces.push_back(word.substr(piece.begin, piece.end - piece.begin));
    }
  }
}

}  // namespace linnet::model
