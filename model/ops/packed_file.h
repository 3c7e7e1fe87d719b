#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace linnet::ops {

// A file beside a model that holds its packed weights, so that all processes of a host that serve
// the model share one copy of them.
//
// Weights are packed as without the file, and memory of the file takes their place where it has the
// same bytes. So nothing has to tell what a file was made from, and one that is damaged, cut or
// from another version is never used. A file that another user could change later is not used
// either. Comparing costs about as much as a digest of the file. The system can keep the file in
// huge pages, as it keeps weights of one process (huge_pages.h): it is written and mapped so.
//
// While an object lives, pack_linear (linear.h) uses it for the weights that its thread packs. The
// loader of a model owns it, for as long as it packs.
class PackedFile {
 public:
  explicit PackedFile(std::filesystem::path path);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  // That of the calling thread; null: weights stay in the memory of the process.
  static PackedFile* Current();

  // Returns read-only memory of the file with these bytes, which follow those of the call before.
  // If the file does not have them, returns null and begins a new file.
  std::shared_ptr<const std::byte> Share(std::span<const std::byte> bytes);

  // Puts the new file, if there is one, in the place of the old one. Returns true if packing once
  // more will find the weights there: this process or another one has made the file. A folder that
  // cannot be written, or a file system without O_TMPFILE, gets no file.
  bool Publish();

 private:
  bool Begin();  // a new file with the bytes that were found in the old one
  bool Append(std::span<const std::byte> bytes, size_t position);  // zeros before them
  bool Write();                                                    // what is pending
  void GiveUp();

  std::filesystem::path path_;
  bool found_ = false;                       // there was a file
  std::shared_ptr<const std::byte> mapped_;  // the old file, if it may be used
  size_t mapped_bytes_ = 0;
  size_t end_ = 0;                  // of the bytes so far
  int descriptor_ = -1;             // of the new file, which has no name yet
  std::vector<std::byte> pending_;  // its last bytes, at most a huge page
  size_t written_ = 0;              // those before them
  bool failed_ = false;             // there will be no new file
};

}  // namespace linnet::ops
