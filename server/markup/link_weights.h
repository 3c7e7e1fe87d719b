#pragma once

#include <vector>

#include "server/markup/element_tree.h"
#include "server/markup/projection.h"

namespace linnet::server {

// The weights of the links between source and target words.
class LinkWeights {
 public:
  explicit LinkWeights(const WordLinks& words);

  // The weight of a target word within an element less that outside of it, from -1 to 1.
  float ShareWithin(int word, const WordRun& source) const {
    float inside = 0;
    for (int i = begins_[word]; i < begins_[word + 1]; ++i) {
      if (source.contains(sorted_[i].source)) inside += sorted_[i].weight;
    }
    return sums_[word] > 0 ? 2 * inside / sums_[word] - 1 : 0;
  }

  // The target word that is aligned best with a source word, if both are in the node; or -1.
  int AlignedIn(const ElementTree::Node& node, int word) const {
    if (!node.source.contains(word)) return -1;
    const int target = aligned_[word];
    return target >= 0 && node.target.contains(target) ? target : -1;
  }

 private:
  std::vector<int> begins_;       // the links of target word t begin at sorted_[begins_[t]]
  std::vector<WordLink> sorted_;  // with their weights as ShareWithin counts them
  std::vector<float> sums_;       // of these weights of each target word
  std::vector<int> aligned_;      // the target word of each source word
};

}  // namespace linnet::server
