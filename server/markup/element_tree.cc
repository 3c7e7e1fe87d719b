#include "server/markup/element_tree.h"

#include <algorithm>
#include <utility>

namespace linnet::server {

int FirstWordBehind(const std::vector<ByteRange>& words, int at) {
  const auto found =
      std::upper_bound(words.begin(), words.end(), at,
                       [](int byte, const ByteRange& word) { return byte < word.end; });
  return static_cast<int>(found - words.begin());
}

ElementTree::ElementTree(std::span<const Code> codes, int begin, int end, int base,
                         const WordLinks& words)
    : codes_(codes), words_(words) {
  AddCodes(begin, end, base, words.source.empty() ? 0 : words.source.back().end);
  nodes_[kRoot].source = {0, static_cast<int>(words.source.size())};
  nodes_[kRoot].target = {0, static_cast<int>(words.target.size())};
  FindLinks();
}

int ElementTree::Add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

void ElementTree::AddCodes(int begin, int end, int base, int length) {
  Add({.element = true, .text = {0, length}});
  std::vector<int> open = {kRoot};
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
      const int node = Add({.close = i, .element = true, .text = {0, at}});
      std::swap(nodes_[node].children, nodes_[kRoot].children);
      nodes_[kRoot].children.push_back(node);
    } else {
      const bool element = code.kind == Code::Kind::kOpen;
      const int node = Add({.open = i, .element = element, .text = {at, element ? length : at}});
      nodes_[open.back()].children.push_back(node);
      if (element) open.push_back(node);
    }
  }
}

void ElementTree::FindLinks() {
  std::vector<int> order = {kRoot};  // each before its children
  for (size_t i = 0; i < order.size(); ++i) {
    for (const int child : nodes_[order[i]].children) order.push_back(child);
  }
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    Node& node = nodes_[*at];
    node.has_link = IsLink(node);
    for (const int child : node.children) node.has_link |= nodes_[child].has_link;
  }
}

bool ElementTree::IsLink(const Node& node) const {
  return (node.open >= 0 && codes_[node.open].link) || (node.close >= 0 && codes_[node.close].link);
}

uint32_t ElementTree::NameOf(const Node& node) const {
  return node.open >= 0 ? codes_[node.open].name : codes_[node.close].name;
}

bool ElementTree::CanHold(int holder, int node) const {
  if (nodes_[node].has_link && IsInLink(nodes_[holder])) return false;
  const uint32_t name = NameOf(nodes_[node]);
  return name == 0 || name != NameOf(nodes_[holder]);
}

void ElementTree::MoveInto(int holder, int node) {
  nodes_[node].holder = holder;
  nodes_[node].in_link |= IsInLink(nodes_[holder]);
  nodes_[holder].has_link |= nodes_[node].has_link;
  nodes_[holder].children.push_back(node);
}

void ElementTree::DropMoved(int parent) {
  std::erase_if(nodes_[parent].children, [&](int child) {
    return nodes_[child].holder >= 0 && nodes_[child].holder != parent;
  });
}

void ElementTree::FindChildWords(int parent) {
  const WordRun words = nodes_[parent].source;
  int next = words.begin;
  for (const int child : nodes_[parent].children) {
    Node& node = nodes_[child];
    if (node.holder >= 0) continue;
    const auto last =
        std::lower_bound(words_.source.begin(), words_.source.end(), node.text.end,
                         [](const ByteRange& word, int at) { return word.begin < at; });
    const WordRun within = {std::max(words.begin, FirstWordBehind(words_.source, node.text.begin)),
                            std::min(words.end, static_cast<int>(last - words_.source.begin()))};
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

std::vector<int> ElementTree::TakeChildren(int parent) {
  std::vector<int> children = std::move(nodes_[parent].children);
  if (nodes_[parent].target.empty()) return children;
  const auto key = [&](int child) {
    const Node& node = nodes_[child];
    // At one place: what is behind a word, what is before one, elements with words.
    int rank = 3;
    if (node.target.empty()) rank = node.behind ? 1 : 2;
    if (node.target.empty() && node.bound()) rank = node.open < 0 ? 0 : 4;
    return std::make_pair(node.target.begin, rank);
  };
  std::stable_sort(children.begin(), children.end(), [&](int a, int b) { return key(a) < key(b); });
  return children;
}

std::vector<PlacedCode> ElementTree::TakeCodes() {
  std::vector<PlacedCode> placed;
  struct Level {
    int node = 0;
    std::vector<int> children;
    size_t next = 0;
    bool behind = false;  // of what it writes, if it has no words
  };
  std::vector<Level> levels = {{.node = kRoot, .children = TakeChildren(kRoot)}};
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
      behind = inner.target.empty() && ((inner.behind && inner.target.begin > node.target.begin) ||
                                        inner.target.begin == node.target.end);
    }
    if (inner.open >= 0) placed.push_back(Place(inner.open, inner.target.begin, behind));
    levels.push_back({.node = child, .children = TakeChildren(child), .behind = behind});
  }
  return placed;
}

PlacedCode ElementTree::Place(int code, int word, bool behind) const {
  const std::vector<ByteRange>& words = words_.target;
  PlacedCode placed = {.code = code, .behind = behind};
  if (behind) {
    placed.at = word == 0 ? 0 : words[word - 1].end;
  } else {
    placed.at = word < std::ssize(words) ? words[word].begin : words.empty() ? 0 : words.back().end;
  }
  return placed;
}

}  // namespace linnet::server
