#include "model/ops/packed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "model/ops/mapped_memory.h"

namespace linnet::ops {
namespace {

constexpr size_t kAlignment = 64;  // of what Share returns: a line of the cache
// A huge page of x86-64. A file system with large folios keeps in one what one call writes, and
// what is read from a disk for memory that asks for huge pages.
constexpr size_t kHugePage = size_t{2} << 20;

thread_local PackedFile* current = nullptr;

bool OnlyWeMayChange(const struct stat& file) {
  return S_ISREG(file.st_mode) && (file.st_uid == geteuid() || file.st_uid == 0) &&
         (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

PackedFile::PackedFile(std::filesystem::path path) : path_(std::move(path)) {
  current = this;
  const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  found_ = file >= 0 || errno != ENOENT;
  if (file < 0) return;
  struct stat status {};
  if (fstat(file, &status) == 0 && OnlyWeMayChange(status) && status.st_size > 0) {
    mapped_bytes_ = static_cast<size_t>(status.st_size);
    const auto memory = std::make_shared<at::DataPtr>(MapFile(file, 0, mapped_bytes_));
    madvise(memory->get(), mapped_bytes_, MADV_HUGEPAGE);  // an older kernel refuses
    mapped_ = {memory, static_cast<const std::byte*>(memory->get())};
  }
  close(file);
}

PackedFile::~PackedFile() {
  GiveUp();
  current = nullptr;
}

PackedFile* PackedFile::Current() { return current; }

std::shared_ptr<const std::byte> PackedFile::Share(std::span<const std::byte> bytes) {
  const size_t position = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  const bool same = descriptor_ < 0 && !failed_ && position + bytes.size() <= mapped_bytes_ &&
                    std::memcmp(mapped_.get() + position, bytes.data(), bytes.size()) == 0;
  if (!same && (!Begin() || !Append(bytes, position))) GiveUp();
  end_ = position + bytes.size();
  return same ? std::shared_ptr<const std::byte>(mapped_, mapped_.get() + position) : nullptr;
}

bool PackedFile::Begin() {
  if (descriptor_ >= 0 || failed_) return !failed_;
  const std::filesystem::path folder = path_.parent_path();
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0444);
  return descriptor_ >= 0 && Append({mapped_.get(), end_}, 0);
}

bool PackedFile::Append(std::span<const std::byte> bytes, size_t position) {
  pending_.resize(position - written_);
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kHugePage - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + count);
    bytes = bytes.subspan(count);
    if (pending_.size() == kHugePage && !Write()) return false;
  }
  return true;
}

bool PackedFile::Write() {
  std::span<const std::byte> bytes = pending_;
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(written_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(count);
    written_ += count;
  }
  pending_.clear();
  return true;
}

void PackedFile::GiveUp() {
  failed_ = true;
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

bool PackedFile::Publish() {
  if (descriptor_ < 0 || !Write()) return false;
  if (found_ && unlink(path_.c_str()) != 0) return false;
  const std::string unnamed = "/proc/self/fd/" + std::to_string(descriptor_);
  return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0 ||
         errno == EEXIST;
}

}  // namespace linnet::ops
