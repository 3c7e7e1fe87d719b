#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/markup/marked_text.h"
#include "server/markup/projection.h"

namespace linnet::server {

// Words [begin, end).
struct WordRun {
  int begin = 0;
  int end = 0;
  bool empty() const { return begin >= end; }
  bool contains(int word) const { return begin <= word && word < end; }
  friend bool operator==(const WordRun&, const WordRun&) = default;
};

// The first word that ends behind byte `at`.
int FirstWordBehind(const std::vector<ByteRange>& words, int at);

// The codes of a segment as a tree of its elements, with the words of each. ProjectCodes gives the
// elements their words of the translation.
//
// Borrows the codes and the words. Not thread-safe.
class ElementTree {
 public:
  // An element of the segment, a code without content, or the segment itself.
  struct Node {
    int open = -1;  // codes; an element that began or ends in another segment lacks one
    int close = -1;
    bool element = false;
    ByteRange text;  // bytes of the segment
    std::vector<int> children = {};
    WordRun source = {};
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
  static constexpr int kRoot = 0;  // the segment

  // Codes [begin, end) are those of the segment. Its text starts at byte `base` of the plain text.
  ElementTree(std::span<const Code> codes, int begin, int end, int base, const WordLinks& words);

  Node& operator[](int node) { return nodes_[node]; }
  const Node& operator[](int node) const { return nodes_[node]; }

  // True if an element may go into its sibling.
  bool CanHold(int holder, int node) const;
  // Moves an element into its sibling. Its parent still lists it (DropMoved).
  void MoveInto(int holder, int node);
  // Removes those that went into a sibling from the children of a node.
  void DropMoved(int parent);

  // Finds the source words of the children of a node, whose own are known: a word at the edge of
  // two belongs to the first. One that has no word of its own shares those that it is in.
  void FindChildWords(int parent);

  // Returns the codes in the order of the words of the translation, and empties the tree.
  std::vector<PlacedCode> TakeCodes();

 private:
  int Add(Node node);
  void AddCodes(int begin, int end, int base, int length);
  void FindLinks();
  bool IsLink(const Node& node) const;
  bool IsInLink(const Node& node) const { return IsLink(node) || node.in_link; }
  uint32_t NameOf(const Node& node) const;
  // The children of a node in the order of the answer.
  std::vector<int> TakeChildren(int parent);
  // Places a code before target word `word`, or behind the word before it.
  PlacedCode Place(int code, int word, bool behind) const;

  const std::span<const Code> codes_;
  const WordLinks& words_;
  std::vector<Node> nodes_;
};

}  // namespace linnet::server
