// Tests with the fake NVML of tests/support/fake_nvml.cc.
#include "server/metrics/metrics_gpu.h"

#include <dlfcn.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cstdlib>

#include "gmock/gmock.h"
#include "server/metrics/metrics.h"
#include "tests/support/places.h"

namespace linnet::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(NvmlTest, OpenReturnsNullWithoutLibraryOrDriver) {
  EXPECT_EQ(Nvml::Open("libnvidia-ml-that-is-not-there.so.1"), nullptr);
  EXPECT_EQ(Nvml::Open("libc.so.6"), nullptr) << "a library without its functions";
  setenv("FAKE_NVML", "no-driver", 1);
  EXPECT_EQ(Nvml::Open(FakeNvml()), nullptr);
  unsetenv("FAKE_NVML");
  Metrics metrics;
  metrics.ShowGpus(nullptr);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("linnet_gpu")));
}

TEST(NvmlTest, ReadsEveryGpuAndOmitsUnsupportedValues) {
  const auto nvml = Nvml::Open(FakeNvml());
  ASSERT_NE(nvml, nullptr);
  const std::vector<GpuStats> gpus = nvml->Read();
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].memory_used_bytes, uint64_t{1} << 30);
  EXPECT_EQ(gpus[0].memory_total_bytes, uint64_t{80} << 30);
  EXPECT_EQ(gpus[0].utilization, 0.37);
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(gpus[1].memory_used_bytes, uint64_t{2} << 30);
  EXPECT_EQ(gpus[1].utilization, std::nullopt);
}

TEST(NvmlTest, PageLabelsGpusByNumber) {
  Metrics metrics;
  metrics.ShowGpus(Nvml::Open(FakeNvml()));
  const std::string page = metrics.Text();
  for (const char* line :
       {"linnet_gpu_memory_used_bytes{gpu=\"0\"} 1073741824\n",
        "linnet_gpu_memory_used_bytes{gpu=\"1\"} 2147483648\n",
        "linnet_gpu_memory_total_bytes{gpu=\"1\"} 85899345920\n",
        "linnet_gpu_utilization_ratio{gpu=\"0\"} 0.37\n", "process_resident_memory_bytes "}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  EXPECT_THAT(page, Not(HasSubstr("linnet_gpu_utilization_ratio{gpu=\"1\"}")));
}

TEST(NvmlTest, ShutsDownTheLibrary) {
  void* library =
      dlopen(FakeNvml().c_str(), RTLD_NOW);  // keeps the library's counter after Nvml closed it
  ASSERT_NE(library, nullptr);
  const int& open = *static_cast<int*>(dlsym(library, "fake_nvml_open"));
  const int before = open;
  auto nvml = Nvml::Open(FakeNvml());
  EXPECT_EQ(open, before + 1);
  nvml = nullptr;
  EXPECT_EQ(open, before);
  dlclose(library);
}

}  // namespace
}  // namespace linnet::server
