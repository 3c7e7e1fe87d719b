#include "server/markup/projection.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"

namespace linnet::server {
namespace {

// A range of words.
struct WordRun {
  int begin = 0;
  int end = 0;
  bool empty() const { return begin >= end; }
  bool contains(int word) const { return begin <= word && word < end; }
  friend bool operator==(const WordRun&, const WordRun&) = default;
};

// An element of the segment, a code without content, or the segment itself.
struct Node {
  int open = -1;  // codes; an element that began or ends in another segment lacks one
  int close = -1;
  bool element = false;
  ByteRange text;  // bytes of the segment
  std::vector<int> children = {};
  WordRun source = {};  // words
  WordRun target = {};
  // The place of a node without words: at word target.begin, or behind the word before it.
  bool behind = false;
  bool has_link = false;  // it is a link, or there is one within it
  // It shares words with a sibling, and goes into that: the words that it would have alone.
  bool shares = false;
  WordRun wished = {};
  int holder = -1;       // the sibling that it went into
  bool in_link = false;  // that is a link, or in one
  bool bound() const { return element && (open < 0 || close < 0); }  // to an edge of its parent
};

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
        owners_(words.target.size(), kNobody) {
    const int source_end = words.source.empty() ? 0 : words.source.back().end;
    MakeTree(begin, end, base, source_end);
    IndexLinks();
  }

  std::vector<PlacedCode> Places() {
    std::vector<int> order = {0};  // parents before their children, which may go into each other
    for (size_t i = 0; i < order.size(); ++i) {
      PlaceChildren(order[i]);
      const std::vector<int>& children = nodes_[order[i]].children;
      order.insert(order.end(), children.begin(), children.end());
    }
    return Write();
  }

 private:
  int NewNode(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  void MakeTree(int begin, int end, int base, int length) {
    NewNode({.element = true, .text = {0, length}});
    std::vector<int> open = {0};
    for (int i = begin; i < end; ++i) {
      const Code& code = codes_[i];
      const int at = std::clamp(code.at - base, 0, length);
      const bool paired = begin <= code.partner && code.partner < end;
      if (code.kind == Code::Kind::kClose && paired) {
        nodes_[open.back()].close = i;
        nodes_[open.back()].text.end = at;
        open.pop_back();
      } else if (code.kind == Code::Kind::kClose) {
        // It began in an earlier segment, so it holds all before this place.
        const int node = NewNode({.close = i, .element = true, .text = {0, at}});
        std::swap(nodes_[node].children, nodes_[0].children);
        nodes_[0].children.push_back(node);
      } else {
        const bool element = code.kind == Code::Kind::kOpen;
        const int node =
            NewNode({.open = i, .element = element, .text = {at, element ? length : at}});
        nodes_[open.back()].children.push_back(node);
        if (element) open.push_back(node);
      }
    }
    nodes_[0].source = {0, static_cast<int>(words_.source.size())};
    nodes_[0].target = {0, static_cast<int>(words_.target.size())};
    FindLinks();
  }

  uint32_t NameOf(const Node& node) const {
    return node.open >= 0 ? codes_[node.open].name : codes_[node.close].name;
  }

  // True if an element may go into its sibling.
  bool CanHold(const Node& holder, const Node& node) const {
    if (node.has_link && (IsLink(holder) || holder.in_link)) return false;
    return NameOf(node) == 0 || NameOf(node) != NameOf(holder);
  }

  bool IsLink(const Node& node) const {
    return (node.open >= 0 && codes_[node.open].link) ||
           (node.close >= 0 && codes_[node.close].link);
  }

  void FindLinks() {
    const std::vector<int> order = Order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      Node& node = nodes_[*at];
      node.has_link = IsLink(node);
      for (const int child : node.children) node.has_link |= nodes_[child].has_link;
    }
  }

  void IndexLinks() {
    links_of_.resize(words_.target.size() + 1);
    sums_.resize(words_.target.size());
    for (const WordLink& link : words_.links) {
      ++links_of_[link.target + 1];
      sums_[link.target] += link.weight;
    }
    std::partial_sum(links_of_.begin(), links_of_.end(), links_of_.begin());
    sorted_.resize(words_.links.size());
    std::vector<int> next(links_of_.begin(), links_of_.end());
    std::vector<float> best(words_.source.size(), 0);
    aligned_.assign(words_.source.size(), -1);
    // A word that every target word looks at, as a full stop, says little of any of them: the
    // squares of the shares of a target word are divided by what its source words have in all.
    std::vector<float> all(words_.source.size(), 0);
    for (const WordLink& link : words_.links) {
      WordLink& own = sorted_[next[link.target]++] = link;
      const float share = sums_[link.target] > 0 ? link.weight / sums_[link.target] : 0;
      own.weight = share * share;
      all[link.source] += own.weight;
      if (link.weight <= best[link.source]) continue;
      best[link.source] = link.weight;
      aligned_[link.source] = link.target;
    }
    std::fill(sums_.begin(), sums_.end(), 0.0f);
    for (WordLink& link : sorted_) {
      if (all[link.source] > 0) link.weight /= all[link.source];
      sums_[link.target] += link.weight;
    }
  }

  // All nodes, each before its children.
  std::vector<int> Order() const {
    std::vector<int> order = {0};
    for (size_t i = 0; i < order.size(); ++i) {
      for (const int child : nodes_[order[i]].children) order.push_back(child);
    }
    return order;
  }

  // The weight of a target word within an element less that outside of it, from -1 to 1.
  float ShareWithin(int word, const WordRun& source) const {
    float inside = 0;
    for (int i = links_of_[word]; i < links_of_[word + 1]; ++i) {
      if (source.contains(sorted_[i].source)) inside += sorted_[i].weight;
    }
    return sums_[word] > 0 ? 2 * inside / sums_[word] - 1 : 0;
  }

  // A child with words of its own.
  struct Element {
    int node = 0;
    float sum = 0;  // of its best run
  };

  void PlaceChildren(int index) {
    FindWords(index);
    const WordRun parent = nodes_[index].target;
    std::vector<Element> elements;
    std::vector<int> sharers, given;  // the latter come from the parent
    for (const int child : nodes_[index].children) {
      Node& node = nodes_[child];
      if (!node.element || node.source.empty()) continue;
      if (node.holder >= 0) {
        given.push_back(child);
      } else if (node.shares) {
        const Node* const last = sharers.empty() ? nullptr : &nodes_[sharers.back()];
        node.wished =
            last != nullptr && last->source == node.source ? last->wished : WishedRun(node, parent);
        sharers.push_back(child);
      } else if (node.source == nodes_[index].source) {  // so that deep trees take linear time
        node.target = parent;
      } else {
        float sum = 0;
        if (!node.bound()) std::tie(node.wished, sum) = BestRun(node, parent);
        elements.push_back({child, sum});
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
      return std::make_tuple(!nodes_[a.node].bound(), -a.sum, a.node) <
             std::make_tuple(!nodes_[b.node].bound(), -b.sum, b.node);
    });
    for (const Element& element : elements) {
      Node& node = nodes_[element.node];
      node.target = BestRun(node, parent).first;
      SetOwner(node.target, element.node);
      if (!node.target.empty() || node.bound() || !HasWord(node)) continue;
      node.shares = true;
      sharers.push_back(element.node);
    }
    for (const Element& element : elements) SetOwner(nodes_[element.node].target, kNobody);
  }

  void SetOwner(const WordRun& run, int owner) {
    std::fill(owners_.begin() + run.begin, owners_.begin() + std::max(run.begin, run.end), owner);
  }

  bool HasWord(const Node& node) const {
    const auto marks = source_marks_.begin();
    return std::find(marks + node.source.begin, marks + node.source.end, false) !=
           marks + node.source.end;
  }

  // Gives the children that share words the words that they wish for, or puts them into the sibling
  // that has these. Those that wish for the same go into each other, in their order.
  void PlaceSharers(int index, const std::vector<int>& sharers) {
    const WordRun parent = nodes_[index].target;
    if (parent.empty()) return;
    for (const int child : nodes_[index].children) SetOwner(nodes_[child].target, child);
    for (const int sharer : sharers) {
      Node& node = nodes_[sharer];
      const WordRun wished = {std::max(node.wished.begin, parent.begin),
                              std::min(node.wished.end, parent.end)};
      node.wished = wished.empty() ? parent : wished;
      const auto [owner, run] = FindOwner(node.wished);
      if (owner == kNobody) {
        node.target = node.wished;
        SetOwner(node.target, sharer);
      } else if (CanHold(nodes_[owner], node)) {
        node.wished = run;
        node.holder = owner;
        node.in_link |= IsLink(nodes_[owner]) || nodes_[owner].in_link;
        nodes_[owner].has_link |= node.has_link;
        nodes_[owner].children.push_back(sharer);
        SetOwner(run, sharer);
      }
    }
    std::vector<int>& children = nodes_[index].children;
    SetOwner(parent, kNobody);
    std::erase_if(children, [&](int child) {
      return nodes_[child].holder >= 0 && nodes_[child].holder != index;
    });
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
      sum += ShareWithin(word, node.source);
      if (best.empty() || sum > best_sum) {
        best = {begin, word + 1};
        best_sum = sum;
      }
    }
    return best;
  }

  // The words of the children: a word at the edge of two belongs to the first. One that has no word
  // of its own shares those that it is in.
  void FindWords(int index) {
    int next = nodes_[index].source.begin;
    for (const int child : nodes_[index].children) {
      Node& node = nodes_[child];
      if (node.holder >= 0) continue;
      const auto first =
          std::upper_bound(words_.source.begin(), words_.source.end(), node.text.begin,
                           [](int at, const ByteRange& word) { return at < word.end; });
      const auto last =
          std::lower_bound(words_.source.begin(), words_.source.end(), node.text.end,
                           [](const ByteRange& word, int at) { return word.begin < at; });
      const WordRun parent = nodes_[index].source;
      const WordRun within = {
          std::max(parent.begin, static_cast<int>(first - words_.source.begin())),
          std::min(parent.end, static_cast<int>(last - words_.source.begin()))};
      node.source = {std::max(next, within.begin), within.end};
      if (!node.element || node.text.begin >= node.text.end) {
        node.source.end = node.source.begin;
      } else if (node.source.empty() && !within.empty() && !node.bound()) {
        node.shares = true;
        node.source = within;
        continue;
      }
      if (!node.source.empty()) next = node.source.end;
    }
  }

  // The run of free words within the parent's with the greatest sum of values, less half a value
  // for each word that it has more or less than the element, and that sum; empty if none is free.
  std::pair<WordRun, float> BestRun(const Node& node, const WordRun& parent) const {
    if (node.bound()) return {EdgeRun(node, parent), 0.0f};
    constexpr float kLengthCost = 0.5f;
    const int length = node.source.end - node.source.begin;
    std::vector<float> values;
    for (int word = parent.begin; word < parent.end; ++word)
      values.push_back(ShareWithin(word, node.source));
    WordRun best = {parent.begin, parent.begin};
    float best_sum = 0;
    const auto find = [&](bool marks_alone) {
      for (int begin = parent.begin; begin < parent.end; ++begin) {
        float sum = 0;
        bool fits = marks_alone;
        for (int end = begin + 1; end <= parent.end && owners_[end - 1] == kNobody; ++end) {
          sum += values[end - 1 - parent.begin];
          fits |= !target_marks_[end - 1];
          const float now = sum - kLengthCost * static_cast<float>(std::abs(end - begin - length));
          if (fits && (best.empty() || now > best_sum)) best = {begin, end}, best_sum = now;
        }
      }
    };
    find(/*marks_alone=*/!HasWord(node));
    if (best.empty()) find(/*marks_alone=*/true);
    // A comma or a bracket at its edge is not its own unless it has one there in the source.
    const bool mark_first = source_marks_[node.source.begin];
    const bool mark_last = source_marks_[node.source.end - 1];
    while (best.end - best.begin > 1 && !mark_first && target_marks_[best.begin]) ++best.begin;
    while (best.end - best.begin > 1 && !mark_last && target_marks_[best.end - 1]) --best.end;
    return {best, best_sum};
  }

  // The same of an element that is bound to the edge of its parent. It may hold other words to
  // reach one of its own.
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
      const float value = ShareWithin(word, node.source);
      sum += value;
      own |= value > 0;
      if (!own || (!best.empty() && sum <= best_sum)) continue;
      best = from_begin ? WordRun{parent.begin, word + 1} : WordRun{word, parent.end};
      best_sum = sum;
    }
    return best;
  }

  // The target word that is aligned best with a source word, if both are in the node; or -1.
  int AlignedIn(const Node& node, int word) const {
    if (!node.source.contains(word)) return -1;
    const int target = aligned_[word];
    return target >= 0 && node.target.contains(target) ? target : -1;
  }

  // Places the children without words of their own.
  void PlaceEmpty(int index) {
    Node& parent = nodes_[index];
    std::vector<WordRun> runs;
    // What is not bound to an edge lies between what is.
    WordRun room = parent.target;
    for (const int child : parent.children) {
      const Node& node = nodes_[child];
      if (node.target.empty()) continue;
      if (node.element && node.open < 0) {
        room.begin = node.target.end;
      } else if (node.bound()) {
        room.end = node.target.begin;
      } else {
        runs.push_back(node.target);
      }
    }
    std::sort(runs.begin(), runs.end(),
              [](const WordRun& a, const WordRun& b) { return a.begin < b.begin; });
    // The run of a sibling around a place between words; its edge takes the code.
    const auto around = [&](int place) -> const WordRun* {
      const auto after =
          std::lower_bound(runs.begin(), runs.end(), place,
                           [](const WordRun& run, int at) { return run.begin < at; });
      if (after == runs.begin() || std::prev(after)->end <= place) return nullptr;
      return &*std::prev(after);
    };
    int previous = parent.target.begin;
    bool behind = false;
    for (const int child : parent.children) {
      Node& node = nodes_[child];
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
      const Code& code = codes_[node.open];
      const auto right =
          std::upper_bound(words_.source.begin(), words_.source.end(), node.text.begin,
                           [](int at, const ByteRange& word) { return at < word.end; });
      const auto right_word = static_cast<int>(right - words_.source.begin());
      const int after = AlignedIn(parent, right_word);
      const int before = AlignedIn(parent, right_word - 1);
      const bool left = !node.element && (code.closes || (code.visible && code.stand_in == 0 &&
                                                          !code.space_before && code.space_after));
      if (before >= 0 && (left || after < 0)) {
        const WordRun* const sibling = around(before + 1);
        previous = sibling == nullptr ? before + 1 : sibling->end;
        behind = true;
      } else if (after >= 0) {
        const WordRun* const sibling = around(after);
        previous = sibling == nullptr ? after : sibling->begin;
        behind = false;
      }
      previous = std::clamp(previous, room.begin, std::max(room.begin, room.end));
      node.target = {previous, previous};
      node.behind = behind;
    }
  }

  // Writes the codes of the tree in the order of the words.
  std::vector<PlacedCode> Write() {
    std::vector<PlacedCode> placed;
    struct Level {
      int node = 0;
      std::vector<int> children;
      size_t next = 0;
      bool behind = false;  // of what it writes, if it has no words
    };
    std::vector<Level> levels;
    const auto enter = [&](int index, bool behind) {
      std::vector<int> children = std::move(nodes_[index].children);
      const WordRun run = nodes_[index].target;
      const auto key = [&](int child) {
        const Node& node = nodes_[child];
        int rank =
            3;  // at one place: what is behind a word, what is before one, elements with words
        if (node.target.empty()) rank = node.behind ? 1 : 2;
        if (node.target.empty() && node.bound()) rank = node.open < 0 ? 0 : 4;
        return std::make_pair(node.target.begin, rank);
      };
      if (!run.empty()) {
        std::stable_sort(children.begin(), children.end(),
                         [&](int a, int b) { return key(a) < key(b); });
      }
      levels.push_back({index, std::move(children), 0, behind});
    };
    enter(0, false);
    while (!levels.empty()) {
      Level& level = levels.back();
      const Node& node = nodes_[level.node];
      if (level.next == level.children.size()) {
        if (node.close >= 0)
          placed.push_back(
              Place(node.close, node.target.end, node.target.empty() ? level.behind : true));
        levels.pop_back();
        continue;
      }
      const int child = level.children[level.next++];
      const Node& inner = nodes_[child];
      bool behind = level.behind;
      if (!node.target.empty()) {
        behind =
            inner.target.empty() && ((inner.behind && inner.target.begin > node.target.begin) ||
                                     inner.target.begin == node.target.end);
      }
      if (inner.open >= 0) placed.push_back(Place(inner.open, inner.target.begin, behind));
      enter(child, behind);
    }
    return placed;
  }

  PlacedCode Place(int code, int place, bool behind) const {
    const std::vector<ByteRange>& words = words_.target;
    PlacedCode placed = {.code = code, .behind = behind};
    if (behind) {
      placed.at = place == 0 ? 0 : words[place - 1].end;
    } else {
      placed.at = place < std::ssize(words) ? words[place].begin
                  : words.empty()           ? 0
                                            : words.back().end;
    }
    return placed;
  }

  const std::span<const Code> codes_;
  const WordLinks& words_;
  const std::vector<bool> source_marks_;  // of each word, whether it is one
  const std::vector<bool> target_marks_;
  std::vector<Node> nodes_;
  std::vector<int> links_of_;     // of target word t, sorted_[links_of_[t], links_of_[t + 1])
  std::vector<WordLink> sorted_;  // with their weights as ShareWithin counts them
  std::vector<float> sums_;       // of these weights of each target word
  std::vector<int> aligned_;      // the target word of each source word
  // Of each target word the sibling that has it, of those placed so far.
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
  return Projection(codes, begin, end, base, words, source, target).Places();
}

}  // namespace linnet::server
