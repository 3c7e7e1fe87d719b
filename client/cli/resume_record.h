#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

// FNV-1a of 64 bits over `seed` and what follows: tells inputs apart that were mixed up, and is no
// protection against somebody who forges one.
inline constexpr uint64_t kEmptyDigest = 0xcbf29ce484222325;
uint64_t Digest(uint64_t seed, absl::string_view bytes);

// How many texts of an input are answered, and the digest of these texts.
struct Checkpoint {
  int64_t texts = 0;
  uint64_t digest = kEmptyDigest;
};

// What an output file is being made from, in FILE.resume beside it as long as the run is not
// finished: so --resume can refuse to go on with another input or other options, and a run without
// --resume does not empty the file by mistake. Written after the answers that it speaks of: a run
// that is killed in between has more answers than its record says, never fewer.
class ResumeRecord {
 public:
  struct Content {
    uint64_t settings = 0;  // digest of the request without its texts
    Checkpoint done;
  };

  // That of an output file; nothing if there is none, or none that can be read.
  static std::optional<Content> Read(const std::string& output);

  // Nothing is written yet. Where it cannot be written nothing is recorded.
  ResumeRecord(const std::string& output, uint64_t settings);
  ~ResumeRecord();  // takes away the file of a run that has answered nothing
  ResumeRecord(const ResumeRecord&) = delete;
  ResumeRecord& operator=(const ResumeRecord&) = delete;

  void Write(const Checkpoint& done);
  // The run is finished: takes the file away.
  void Remove();

 private:
  const std::string path_;
  const uint64_t settings_;
  int file_ = -1;
  int64_t texts_ = 0;  // of the last Write
};

}  // namespace linnet::client
