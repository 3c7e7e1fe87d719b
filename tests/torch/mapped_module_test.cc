#include "model/torch/module/mapped_module.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "model/ops/mapped_memory.h"
#include "tests/support/temporary_folder.h"

namespace linnet::model {
namespace {

using ::testing::HasSubstr;

// True if the address lies in a mapping of the file.
bool IsMapped(const void* address, const std::filesystem::path& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(file.string()) == std::string::npos) continue;
    std::istringstream fields(line);
    uintptr_t begin = 0, end = 0;
    fields >> std::hex >> begin;
    fields.ignore(1);
    fields >> end;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (begin <= at && at < end) return true;
  }
  return false;
}

// The bytes in memory of the mapping that begins on the page of the address.
size_t ResidentBytes(const void* address) {
  const auto page = reinterpret_cast<uintptr_t>(address) / 4096 * 4096;
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream begin;
  begin << std::hex << page << "-";
  bool there = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(begin.str()) == 0) there = true;
    if (there && line.find("Rss:") == 0) return std::stoull(line.substr(4)) * 1024;
  }
  return 0;
}

class MappedModuleTest : public ::testing::Test {
 protected:
  MappedModuleTest() : file_(folder_.path() / "model.pt") {
    torch::jit::Module module("Model");
    const at::Tensor large = at::randn({512, 64});
    module.register_parameter("large", large, /*is_buffer=*/false);
    module.register_parameter("tied", large, /*is_buffer=*/false);
    module.register_parameter("rows", large.narrow(0, 100, 50), /*is_buffer=*/false);
    module.register_parameter("small", at::randn({64, 64}), /*is_buffer=*/false);
    module.register_attribute("list", c10::ListType::ofTensors(),
                              c10::List<at::Tensor>({at::randn({512, 65})}));
    module.save(file_.string());
  }

  test::TemporaryFolder folder_;
  std::filesystem::path file_;
};

TEST_F(MappedModuleTest, WeightsEqualThoseOfTorchsLoader) {
  const torch::jit::Module want = torch::jit::load(file_.string());
  const torch::jit::Module got = LoadMapped(file_);
  for (const char* name : {"large", "tied", "rows", "small"}) {
    EXPECT_TRUE(at::equal(got.attr(name).toTensor(), want.attr(name).toTensor())) << name;
  }
  EXPECT_TRUE(
      at::equal(got.attr("list").toTensorVector()[0], want.attr("list").toTensorVector()[0]));
}

TEST_F(MappedModuleTest, LargeWeightsAreMappedAndSmallOnesRead) {
  const torch::jit::Module module = LoadMapped(file_);
  const auto is_mapped = [&](const char* name) {
    return IsMapped(module.attr(name).toTensor().const_data_ptr(), file_);
  };
  EXPECT_TRUE(is_mapped("large"));
  EXPECT_TRUE(is_mapped("rows"));
  EXPECT_FALSE(is_mapped("small"));
  EXPECT_TRUE(IsMapped(module.attr("list").toTensorVector()[0].const_data_ptr(), file_));
}

TEST_F(MappedModuleTest, TiedWeightsShareOneMapping) {
  const torch::jit::Module module = LoadMapped(file_);
  const at::Tensor large = module.attr("large").toTensor();
  EXPECT_EQ(module.attr("tied").toTensor().const_data_ptr(), large.const_data_ptr());
  EXPECT_EQ(module.attr("rows").toTensor().const_data_ptr(), large[100].const_data_ptr());
}

TEST_F(MappedModuleTest, MappingEndsWithTheLastTensor) {
  const void* address = nullptr;
  {
    at::Tensor large;
    {
      const torch::jit::Module module = LoadMapped(file_);
      large = module.attr("large").toTensor();
    }
    address = large.const_data_ptr();
    EXPECT_TRUE(IsMapped(address, file_));
  }
  EXPECT_FALSE(IsMapped(address, file_));
}

TEST_F(MappedModuleTest, PagesThatAreGivenBackReadTheSame) {
  const torch::jit::Module module = LoadMapped(file_);
  const at::Tensor large = module.attr("large").toTensor();
  const at::Tensor before = large.clone();
  EXPECT_GE(ResidentBytes(large.const_data_ptr()), large.nbytes() - 8192);
  ops::GiveBackPages(large.storage().data_ptr(), large.const_data_ptr(), large.nbytes());
  EXPECT_LE(ResidentBytes(large.const_data_ptr()), 8192);  // what shares a page with others
  EXPECT_TRUE(at::equal(large, before));
}

TEST_F(MappedModuleTest, OtherMemoryIsNotGivenBack) {
  const at::Tensor own = at::randn({512, 64});
  const at::Tensor copy = own.clone();
  ops::GiveBackPages(own.storage().data_ptr(), own.const_data_ptr(), own.nbytes());
  EXPECT_TRUE(at::equal(own, copy));
}

TEST_F(MappedModuleTest, FileThatIsMissingOrCutIsRefused) {
  EXPECT_THROW(
      {
        try {
          LoadMapped(folder_.path() / "none.pt");
        } catch (const c10::Error& error) {
          EXPECT_THAT(error.what(), HasSubstr("No such file"));
          throw;
        }
      },
      c10::Error);
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2);
  EXPECT_THROW(LoadMapped(file_), c10::Error);
}

}  // namespace
}  // namespace linnet::model
