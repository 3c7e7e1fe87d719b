#include "model/torch/module/usable_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

namespace linnet::model {
namespace {

namespace fs = std::filesystem;

class CpuTimeLimitTest : public ::testing::Test {
 protected:
  CpuTimeLimitTest() {
    root_ = fs::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
  }
  ~CpuTimeLimitTest() override { fs::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  fs::path root_;
};

TEST_F(CpuTimeLimitTest, ReadsOwnGroupInAContainer) {
  Put("proc/self/cgroup", "0::/");
  Put("sys/fs/cgroup/cpu.max", "150000 100000");
  EXPECT_EQ(CpuTimeLimit(root_), 1.5);
}

TEST_F(CpuTimeLimitTest, UsesTheMinLimitOfTheHierarchy) {
  Put("proc/self/cgroup", "0::/pods/pod7/server");
  Put("sys/fs/cgroup/pods/cpu.max", "800000 100000");
  Put("sys/fs/cgroup/pods/pod7/cpu.max", "50000 25000");
  Put("sys/fs/cgroup/pods/pod7/server/cpu.max", "max 100000");
  Put("sys/fs/cgroup/pods/other/cpu.max", "10000 100000");
  EXPECT_EQ(CpuTimeLimit(root_), 2);
}

TEST_F(CpuTimeLimitTest, ReadsCgroupVersionOne) {
  Put("proc/self/cgroup", "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n1:name=systemd:/");
  Put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  Put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_TRUE(std::isinf(CpuTimeLimit(root_)));
  Put("sys/fs/cgroup/cpu/docker/ab/cpu.cfs_quota_us", "300000");
  Put("sys/fs/cgroup/cpu/docker/ab/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CpuTimeLimit(root_), 3);
}

TEST_F(CpuTimeLimitTest, HandlesHostPathInsideAContainer) {
  Put("proc/self/cgroup", "3:cpuset:/docker/ab\n2:cpu:/docker/ab");
  Put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000");
  Put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CpuTimeLimit(root_), 1);
}

TEST_F(CpuTimeLimitTest, InvalidOrMissingFilesAreNoLimit) {
  EXPECT_TRUE(std::isinf(CpuTimeLimit(root_)));
  Put("proc/self/cgroup", "0::/\nnonsense\n");
  EXPECT_TRUE(std::isinf(CpuTimeLimit(root_)));
  for (const char* text : {"", "max", "max 100000", "100000", "0 100000", "5 0", "a b"}) {
    Put("sys/fs/cgroup/cpu.max", text);
    EXPECT_TRUE(std::isinf(CpuTimeLimit(root_))) << text;
  }
}

TEST(UsableCores, IsBetweenOneAndTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(UsableCores(), 1);
  EXPECT_LE(UsableCores(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace linnet::model
