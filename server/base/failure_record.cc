#include "server/base/failure_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::server {
namespace {

constexpr size_t kMaxIds = 1000;

struct Entry {
  std::string request_id;
  int failures = 0;
};

// A process that is about to end must not wait long for one that hangs.
constexpr absl::Duration kMaxWait = absl::Seconds(1);
constexpr absl::Duration kPoll = absl::Milliseconds(5);

// Holds the lock of a file as long as it lives; waits for it.
class FileLock {
 public:
  static absl::StatusOr<FileLock> Of(const std::filesystem::path& file) {
    const std::string name = absl::StrCat(file.string(), ".lock");
    // Servers of other users can lock what they may only read.
    FileLock lock(open(name.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
    for (absl::Duration waited; lock.descriptor_ >= 0; waited += kPoll) {
      if (flock(lock.descriptor_, LOCK_EX | LOCK_NB) == 0) return lock;
      if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= kMaxWait) break;
      absl::SleepFor(kPoll);
    }
    return absl::UnavailableError(
        absl::StrCat("cannot lock ", name, ": ", std::generic_category().message(errno)));
  }
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

absl::StatusOr<std::vector<Entry>> Read(const std::filesystem::path& file) {
  std::vector<Entry> entries;
  std::error_code error;
  if (!std::filesystem::exists(file, error) && !error) return entries;  // the first failure
  const absl::StatusOr<std::string> text = ReadFile(file, kMaxOperatorFileBytes);
  if (!text.ok()) return absl::UnavailableError(text.status().message());
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (entries.size() == kMaxIds) break;
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    int failures = 0;
    if (absl::SimpleAtoi(parts.first, &failures) && failures > 0 && !parts.second.empty())
      entries.push_back({parts.second, failures});
  }
  return entries;
}

absl::Status Write(const std::filesystem::path& file, const std::vector<Entry>& entries) {
  const std::filesystem::path next = absl::StrCat(file.string(), ".next");
  std::error_code error;
  std::filesystem::remove(next, error);  // of a process that ended here; opening a FIFO would wait
  {
    std::ofstream stream(next);
    const size_t first = entries.size() - std::min(entries.size(), kMaxIds);
    for (size_t i = first; i < entries.size(); ++i)
      stream << entries[i].failures << ' ' << entries[i].request_id << '\n';
    stream.flush();
    if (!stream) return absl::UnavailableError(absl::StrCat("cannot write ", next.string()));
  }
  std::filesystem::rename(next, file, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot replace ", file.string(), ": ", error.message()));
}

}  // namespace

absl::StatusOr<std::map<std::string, int>> RecordFailure(
    const std::filesystem::path& file, const std::vector<std::string>& request_ids) {
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Of(file));
  ASSIGN_OR_RETURN(std::vector<Entry> entries, Read(file));
  std::map<std::string, int> suspects;
  for (const std::string& id : request_ids) {
    Entry entry{id, 1};
    const auto before = std::find_if(entries.begin(), entries.end(),
                                     [&](const Entry& other) { return other.request_id == id; });
    if (before != entries.end()) {
      entry.failures += before->failures;
      entries.erase(before);
      suspects[id] = entry.failures;
    }
    entries.push_back(std::move(entry));
  }
  RETURN_IF_ERROR(Write(file, entries));
  return suspects;
}

}  // namespace linnet::server
