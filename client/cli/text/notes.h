#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "client/cli/text/progress.h"

namespace linnet::client {

// Notes of one kind about single texts, on standard error: the first few, because a large file may
// cause very many, and at the end the number of the others.
class Notes {
 public:
  // `kind` names them in the plural. Nothing is written if `quiet`.
  Notes(std::ostream& err, Progress& progress, std::string kind, bool quiet)
      : err_(err), progress_(progress), kind_(std::move(kind)), quiet_(quiet) {}

  void Write(const std::string& note) {
    if (++count_ > kMaxWritten || quiet_) return;
    progress_.Clear();
    err_ << "linnet: " << note << "\n";
  }

  // "linnet: 20 of 150 refused texts are listed", unless all are.
  void End() {
    if (count_ <= kMaxWritten || quiet_) return;
    progress_.Clear();
    err_ << "linnet: " << kMaxWritten << " of " << count_ << " " << kind_ << " are listed\n";
  }

  int64_t count() const { return count_; }

 private:
  static constexpr int64_t kMaxWritten = 20;

  std::ostream& err_;
  Progress& progress_;
  const std::string kind_;
  const bool quiet_;
  int64_t count_ = 0;
};

}  // namespace linnet::client
