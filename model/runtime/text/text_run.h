#pragma once

namespace linnet::model {

// Bytes [begin, end) of a text.
struct TextRun {
  int begin = 0;
  int end = 0;
  bool operator==(const TextRun&) const = default;
};

}  // namespace linnet::model
