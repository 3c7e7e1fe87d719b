#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace linnet::client {

// 64-bit FNV-1a, continued from `seed`. It detects inputs that were mixed up; it is not
// cryptographic.
inline constexpr uint64_t kEmptyDigest = 0xcbf29ce484222325;
uint64_t Digest(uint64_t seed, absl::string_view bytes);

// The number of answered texts of an input, the digest of these texts, how many of them were
// refused and skipped, and the size of the output with their answers (-1: unknown).
struct Checkpoint {
  int64_t texts = 0;
  uint64_t digest = kEmptyDigest;
  int64_t refused = 0;
  int64_t bytes = -1;
};

// A file FILE.resume beside an output FILE that records its input and options while the run is
// unfinished. With it, --resume can refuse another input or other options, and a run without
// --resume does not overwrite the output by mistake. A checkpoint is written after its answers: a
// killed run may have more answers than its record says, never fewer.
class ResumeRecord {
 public:
  struct Content {
    uint64_t settings = 0;  // digest of the request without its texts
    Checkpoint done;
  };

  // Reads the record of an output file; nullopt if there is none or it cannot be read.
  static std::optional<Content> Read(const std::string& output);

  // Writes nothing yet. If the file cannot be written, nothing is recorded.
  ResumeRecord(const std::string& output, uint64_t settings);
  ~ResumeRecord();  // removes the file of a run that has answered nothing
  ResumeRecord(const ResumeRecord&) = delete;
  ResumeRecord& operator=(const ResumeRecord&) = delete;

  void Write(const Checkpoint& done);
  // Removes the file. Call it when the run is finished.
  void Remove();

 private:
  const std::string path_;
  const uint64_t settings_;
  int file_ = -1;
  int64_t texts_ = 0;  // in the last Write
};

}  // namespace linnet::client
