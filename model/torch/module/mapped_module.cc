#include "model/torch/module/mapped_module.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/ops/mapped_memory.h"

namespace linnet::model {
namespace {

constexpr size_t kMinMappedBytes = 64 << 10;

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      : path_(path.string()), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    TORCH_CHECK(descriptor_ >= 0, "cannot open ", path_, ": ", std::strerror(errno));
    struct stat status {};
    TORCH_CHECK(fstat(descriptor_, &status) == 0, "cannot read ", path_, ": ",
                std::strerror(errno));
    size_ = static_cast<size_t>(status.st_size);
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  size_t size() const { return size_; }

  size_t Read(uint64_t position, char* out, size_t bytes) const {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t count =
          pread(descriptor_, out + done, bytes - done, static_cast<off_t>(position + done));
      if (count < 0 && errno == EINTR) continue;
      TORCH_CHECK(count >= 0, "cannot read ", path_, ": ", std::strerror(errno));
      if (count == 0) break;
      done += count;
    }
    return done;
  }

  at::DataPtr Map(uint64_t position, size_t bytes) const {
    return ops::MapFile(descriptor_, position, bytes);
  }

 private:
  std::string path_;
  int descriptor_;
  size_t size_;
};

// Reads the file for LibTorch's loader except for the weights: it leaves the memory that the loader
// allocates for one untouched, which so takes none, and remembers which weight belongs there.
class SkippingReader : public caffe2::serialize::ReadAdapterInterface {
 public:
  SkippingReader(const OpenFile& file, std::map<uint64_t, size_t> weights)
      : file_(file), weights_(std::move(weights)) {}

  size_t size() const override { return file_.size(); }

  size_t read(uint64_t position, void* out, size_t bytes, const char* /*what*/) const override {
    const auto weight = weights_.find(position);
    if (weight == weights_.end() || weight->second != bytes) {
      return file_.Read(position, static_cast<char*>(out), bytes);
    }
    skipped_[out] = position;
    return bytes;
  }

  // Memory of a weight -> its position in the file.
  const std::map<const void*, uint64_t>& skipped() const { return skipped_; }

 private:
  const OpenFile& file_;
  std::map<uint64_t, size_t> weights_;
  mutable std::map<const void*, uint64_t> skipped_;
};

// Position -> bytes of the records that hold the contents of large tensors.
std::map<uint64_t, size_t> LargeWeights(const std::shared_ptr<SkippingReader>& file) {
  caffe2::serialize::PyTorchStreamReader archive(file);
  std::map<uint64_t, size_t> weights;
  for (const std::string& record : archive.getAllRecords()) {
    if (!absl::StartsWith(record, "data/")) continue;
    const size_t bytes = archive.getRecordSize(record);
    if (bytes >= kMinMappedBytes) weights[archive.getRecordOffset(record)] = bytes;
  }
  return weights;
}

}  // namespace

torch::jit::Module LoadMapped(const std::filesystem::path& path) {
  const OpenFile file(path);
  const std::map<uint64_t, size_t> weights =
      LargeWeights(std::make_shared<SkippingReader>(file, std::map<uint64_t, size_t>{}));
  const auto reader = std::make_shared<SkippingReader>(file, weights);
  torch::jit::Module module = torch::jit::load(reader, at::kCPU);
  c10::IValue::HashAliasedIValues values;
  c10::IValue(module._ivalue()).getSubValues(values);
  std::map<const void*, uint64_t> unmapped = reader->skipped();
  for (const c10::IValue& value : values) {
    if (!value.isTensor() || !value.toTensor().has_storage()) continue;
    const c10::Storage storage = value.toTensor().storage();
    const auto found = unmapped.find(storage.data());
    if (found == unmapped.end()) continue;
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(
        file.Map(found->second, weights.at(found->second)));
    unmapped.erase(found);
  }
  if (!unmapped.empty()) {
    throw std::runtime_error(absl::StrCat("the weight at byte ", unmapped.begin()->second,
                                          " of the file is in no tensor of the module: export the "
                                          "bundle with this version of Linnet"));
  }
  return module;
}

}  // namespace linnet::model
