#include "server/markup/projection.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "server/markup/element_tree.h"
#include "server/markup/link_weights.h"

namespace linnet::server {
namespace {

using Node = ElementTree::Node;

std::vector<bool> FindMarks(const std::vector<ByteRange>& words, absl::string_view text) {
  std::vector<bool> marks;
  for (const ByteRange& word : words)
    marks.push_back(IsMark(absl::ClippedSubstr(text, word.begin, word.end - word.begin)));
  return marks;
}

class Projection {
 public:
  Projection(std::span<const Code> codes, int begin, int end, int base, const WordLinks& words,
             absl::string_view source, absl::string_view target)
      : codes_(codes),
        words_(words),
        source_marks_(FindMarks(words.source, source)),
        target_marks_(FindMarks(words.target, target)),
        weights_(words),
        tree_(codes, begin, end, base, words),
        owners_(words.target.size(), kNobody) {}

  std::vector<PlacedCode> PlaceCodes() {
    // Parents before their children, which may go into each other.
    std::vector<int> order = {ElementTree::kRoot};
    for (size_t i = 0; i < order.size(); ++i) {
      PlaceChildren(order[i]);
      const std::vector<int>& children = tree_[order[i]].children;
      order.insert(order.end(), children.begin(), children.end());
    }
    return tree_.TakeCodes();
  }

 private:
  struct ScoredRun {
    WordRun run;
    float sum = 0;
  };

  // A child with words of its own.
  struct Element {
    int node = 0;
    ScoredRun best = {};  // while all words are free; none of an element that is bound to an edge
  };

  void PlaceChildren(int index) {
    tree_.FindChildWords(index);
    const WordRun parent = tree_[index].target;
    std::vector<Element> elements;
    std::vector<int> sharers, given;  // the latter come from the parent
    for (const int child : tree_[index].children) {
      Node& node = tree_[child];
      if (!node.element || node.source.empty()) continue;
      if (node.holder >= 0) {
        given.push_back(child);
      } else if (node.shares) {
        const Node* const last = sharers.empty() ? nullptr : &tree_[sharers.back()];
        node.wished =
            last != nullptr && last->source == node.source ? last->wished : WishedRun(node, parent);
        sharers.push_back(child);
      } else if (node.source == tree_[index].source) {  // so that deep trees take linear time
        node.target = parent;
      } else if (node.bound()) {
        elements.push_back({child});
      } else {
        const ScoredRun best = BestRun(node, parent);
        node.wished = WithoutEdgeMarks(node, best.run);
        elements.push_back({child, best});
      }
    }
    PlaceElements(elements, parent, sharers);
    sharers.insert(sharers.end(), given.begin(), given.end());
    if (!sharers.empty()) PlaceSharers(index, sharers);
    PlaceEmpty(index);
  }

  // Gives the elements words, those that are bound to an edge first, then those with the greatest
  // sum. Those for which no word is left share one.
  void PlaceElements(std::vector<Element>& elements, const WordRun& parent,
                     std::vector<int>& sharers) {
    std::sort(elements.begin(), elements.end(), [this](const Element& a, const Element& b) {
      return std::make_tuple(!tree_[a.node].bound(), -a.best.sum, a.node) <
             std::make_tuple(!tree_[b.node].bound(), -b.best.sum, b.node);
    });
    for (const auto& [index, best] : elements) {
      Node& node = tree_[index];
      if (node.bound()) {
        node.target = EdgeRun(node, parent);
      } else {
        // A run that is still free is also the best one of the free words.
        const WordRun run = IsFree(best.run) ? best.run : BestRun(node, parent).run;
        node.target = WithoutEdgeMarks(node, run);
      }
      SetOwner(node.target, index);
      if (!node.target.empty() || node.bound() || !HasWord(node)) continue;
      node.shares = true;
      sharers.push_back(index);
    }
    for (const Element& element : elements) SetOwner(tree_[element.node].target, kNobody);
  }

  void SetOwner(const WordRun& run, int owner) {
    std::fill(owners_.begin() + run.begin, owners_.begin() + std::max(run.begin, run.end), owner);
  }

  bool IsFree(const WordRun& run) const {
    return std::all_of(owners_.begin() + run.begin, owners_.begin() + run.end,
                       [](int owner) { return owner == kNobody; });
  }

  bool HasWord(const Node& node) const {
    const auto marks = source_marks_.begin();
    return std::find(marks + node.source.begin, marks + node.source.end, false) !=
           marks + node.source.end;
  }

  // Gives the children that share words the words that they wish for, or puts them into the sibling
  // that has these. Those that wish for the same go into each other, in their order.
  void PlaceSharers(int index, const std::vector<int>& sharers) {
    const WordRun parent = tree_[index].target;
    if (parent.empty()) return;
    for (const int child : tree_[index].children) SetOwner(tree_[child].target, child);
    for (const int sharer : sharers) {
      Node& node = tree_[sharer];
      const WordRun wished = {std::max(node.wished.begin, parent.begin),
                              std::min(node.wished.end, parent.end)};
      node.wished = wished.empty() ? parent : wished;
      const auto [owner, run] = FindOwner(node.wished);
      if (owner == kNobody) {
        node.target = node.wished;
        SetOwner(node.target, sharer);
      } else if (tree_.CanHold(owner, sharer)) {
        node.wished = run;
        tree_.MoveInto(owner, sharer);
        SetOwner(run, sharer);
      }
    }
    SetOwner(parent, kNobody);
    tree_.DropMoved(index);
  }

  // The child that has most of the words, and these; kNobody if all are free.
  std::pair<int, WordRun> FindOwner(const WordRun& words) const {
    int owner = kNobody;
    WordRun most = words;
    for (int begin = words.begin, end = begin; begin < words.end; begin = end) {
      while (end < words.end && owners_[end] == owners_[begin]) ++end;
      if (owners_[begin] == kNobody || (owner != kNobody && end - begin <= most.end - most.begin))
        continue;
      owner = owners_[begin];
      most = {begin, end};
    }
    return {owner, most};
  }

  // The run within the parent's with the greatest sum of values.
  WordRun WishedRun(const Node& node, const WordRun& parent) const {
    WordRun best = {parent.begin, parent.begin};
    float best_sum = 0;
    float sum = 0;
    for (int word = parent.begin, begin = word; word < parent.end; ++word) {
      if (sum < 0) {
        sum = 0;
        begin = word;
      }
      sum += weights_.ShareWithin(word, node.source);
      if (best.empty() || sum > best_sum) {
        best = {begin, word + 1};
        best_sum = sum;
      }
    }
    return best;
  }

  // The run of free words within the parent's with the greatest sum of values, less half a value
  // for each word that it has more or less than the element; empty if none is free.
  ScoredRun BestRun(const Node& node, const WordRun& parent) const {
    constexpr float kLengthCost = 0.5f;
    const int length = node.source.end - node.source.begin;
    std::vector<float> values;
    for (int word = parent.begin; word < parent.end; ++word)
      values.push_back(weights_.ShareWithin(word, node.source));
    ScoredRun best = {.run = {parent.begin, parent.begin}};
    const auto find = [&](bool marks_alone) {
      for (int begin = parent.begin; begin < parent.end; ++begin) {
        float sum = 0;
        bool fits = marks_alone;
        for (int end = begin + 1; end <= parent.end && owners_[end - 1] == kNobody; ++end) {
          sum += values[end - 1 - parent.begin];
          fits |= !target_marks_[end - 1];
          const float now = sum - kLengthCost * static_cast<float>(std::abs(end - begin - length));
          if (fits && (best.run.empty() || now > best.sum)) best = {{begin, end}, now};
        }
      }
    };
    find(/*marks_alone=*/!HasWord(node));
    if (best.run.empty()) find(/*marks_alone=*/true);
    return best;
  }

  // The run less the commas and brackets at its edges, unless the element has one there in the
  // source.
  WordRun WithoutEdgeMarks(const Node& node, WordRun run) const {
    const bool mark_first = source_marks_[node.source.begin];
    const bool mark_last = source_marks_[node.source.end - 1];
    while (run.end - run.begin > 1 && !mark_first && target_marks_[run.begin]) ++run.begin;
    while (run.end - run.begin > 1 && !mark_last && target_marks_[run.end - 1]) --run.end;
    return run;
  }

  // The run of an element that is bound to the edge of its parent. It may hold other words to reach
  // one of its own.
  WordRun EdgeRun(const Node& node, const WordRun& parent) const {
    const bool from_begin = node.open < 0;
    const int edge = from_begin ? parent.begin : parent.end;
    WordRun best = {edge, edge};
    float best_sum = 0;
    float sum = 0;
    bool own = false;
    for (int i = 0; i < parent.end - parent.begin; ++i) {
      const int word = from_begin ? parent.begin + i : parent.end - 1 - i;
      if (owners_[word] != kNobody) break;
      const float value = weights_.ShareWithin(word, node.source);
      sum += value;
      own |= value > 0;
      if (!own || (!best.empty() && sum <= best_sum)) continue;
      best = from_begin ? WordRun{parent.begin, word + 1} : WordRun{word, parent.end};
      best_sum = sum;
    }
    return best;
  }

  // Where the children of a node without words may stand.
  struct Gaps {
    WordRun room;                    // what is not bound to an edge lies between what is
    std::vector<WordRun> runs = {};  // of the children with words between these, in order

    // The run around a place between words, whose edge takes the code; or null.
    const WordRun* Around(int place) const {
      const auto after =
          std::lower_bound(runs.begin(), runs.end(), place,
                           [](const WordRun& run, int at) { return run.begin < at; });
      if (after == runs.begin() || std::prev(after)->end <= place) return nullptr;
      return &*std::prev(after);
    }
  };

  Gaps FindGaps(const Node& parent) const {
    Gaps gaps = {.room = parent.target};
    for (const int child : parent.children) {
      const Node& node = tree_[child];
      if (node.target.empty()) continue;
      if (node.element && node.open < 0) {
        gaps.room.begin = node.target.end;
      } else if (node.bound()) {
        gaps.room.end = node.target.begin;
      } else {
        gaps.runs.push_back(node.target);
      }
    }
    std::sort(gaps.runs.begin(), gaps.runs.end(),
              [](const WordRun& a, const WordRun& b) { return a.begin < b.begin; });
    return gaps;
  }

  // True for a node without words that belongs to the word on its left alone.
  bool IsAttachedLeft(const Node& node) const {
    const Code& code = codes_[node.open];
    return !node.element && (code.closes || (code.visible && code.stand_in == 0 &&
                                             !code.space_before && code.space_after));
  }

  // Places the children without words of their own.
  void PlaceEmpty(int index) {
    const Node& parent = tree_[index];
    const Gaps gaps = FindGaps(parent);
    int previous = parent.target.begin;
    bool behind = false;
    for (const int child : parent.children) {
      Node& node = tree_[child];
      if (!node.target.empty()) {
        previous = node.target.end;
        behind = true;
        continue;
      }
      if (node.bound()) {
        node.behind = node.open >= 0;
        node.target.begin = node.target.end = node.behind ? parent.target.end : parent.target.begin;
        continue;
      }
      const int right_word = FirstWordBehind(words_.source, node.text.begin);
      const int after = weights_.AlignedIn(parent, right_word);
      const int before = weights_.AlignedIn(parent, right_word - 1);
      if (before >= 0 && (after < 0 || IsAttachedLeft(node))) {
        const WordRun* const sibling = gaps.Around(before + 1);
        previous = sibling == nullptr ? before + 1 : sibling->end;
        behind = true;
      } else if (after >= 0) {
        const WordRun* const sibling = gaps.Around(after);
        previous = sibling == nullptr ? after : sibling->begin;
        behind = false;
      }
      previous = std::clamp(previous, gaps.room.begin, std::max(gaps.room.begin, gaps.room.end));
      node.target = {previous, previous};
      node.behind = behind;
    }
  }

  const std::span<const Code> codes_;
  const WordLinks& words_;
  const std::vector<bool> source_marks_;  // of each word, whether it is one
  const std::vector<bool> target_marks_;
  const LinkWeights weights_;
  ElementTree tree_;
  // The sibling that has each target word, among those placed so far.
  static constexpr int kNobody = -1;
  std::vector<int> owners_;
};

}  // namespace

bool IsMark(absl::string_view word) {
  for (size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    if (absl::ascii_isalnum(byte)) return false;
    if (byte < 0xC0) continue;  // a mark of ASCII, or not the first byte of a character
    // U+0080 to U+00BF, U+2000 to U+206F, U+3000 to U+303F
    const absl::string_view first = word.substr(i, 2);
    if (byte != 0xC2 && first != "\xE2\x80" && first != "\xE2\x81" && first != "\xE3\x80")
      return false;
  }
  return true;
}

std::vector<PlacedCode> ProjectCodes(std::span<const Code> codes, int begin, int end, int base,
                                     const WordLinks& words, absl::string_view source,
                                     absl::string_view target) {
  return Projection(codes, begin, end, base, words, source, target).PlaceCodes();
}

}  // namespace linnet::server
