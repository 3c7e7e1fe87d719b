#include "server/metrics/metrics_process.h"

#include <prometheus/metric_family.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::server {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

// A fake /proc with the files that are read.
class ProcTest : public ::testing::Test {
 protected:
  ProcTest() {
    fs::create_directories(proc() / "self/fd");
    for (const char* fd : {"0", "1", "2", "17"}) Write(std::string("self/fd/") + fd, "");
    Write("self/stat",
          "4711 (a (very) odd name) S 1 2 3 0 -1 4194560 100 0 5 0 1234 66 7 8 20 0 9 0 25000 "
          "123456789 321 18446744073709551615 1 1 0\n");
    Write("stat", "cpu  1 2 3\nbtime 1700000000\nprocesses 5\n");
    Write("self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max cpu time              unlimited            unlimited            seconds   \n"
          "Max open files            1024                 524288               files     \n");
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(proc() / name) << text;
  }
  const fs::path& proc() const { return folder_.path(); }

  test::TemporaryFolder folder_;
};

TEST_F(ProcTest, ReadsEveryField) {
  const auto stats = ReadProcessStats(proc());
  ASSERT_THAT(stats, IsOk());
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(absl::ToDoubleSeconds(stats->cpu), 1300 / ticks);
  EXPECT_EQ(stats->start, absl::FromUnixSeconds(1700000000) + absl::Seconds(25000 / ticks));
  EXPECT_EQ(stats->resident_bytes, 321 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(stats->open_fds, 4);
  EXPECT_EQ(stats->max_fds, 1024);
}

TEST_F(ProcTest, OmitsMaxFdsWithoutALimit) {
  Write("self/limits", "Max open files            unlimited            unlimited   files\n");
  EXPECT_EQ(ReadProcessStats(proc())->max_fds, -1);
  for (const auto& family : ProcessMetrics(proc()).Collect())
    EXPECT_NE(family.name, "process_max_fds");
}

TEST_F(ProcTest, MissingOrMalformedFilesAreErrors) {
  for (const char* file : {"self/stat", "stat", "self/limits"}) {
    const fs::path kept = proc() / "kept";
    fs::rename(proc() / file, kept);
    EXPECT_THAT(ReadProcessStats(proc()), StatusIs(absl::StatusCode::kNotFound)) << file;
    EXPECT_THAT(ProcessMetrics(proc()).Collect(), IsEmpty());
    Write(file, "nothing that is known\n");
    EXPECT_THAT(ReadProcessStats(proc()), StatusIs(absl::StatusCode::kInternal)) << file;
    fs::rename(kept, proc() / file);
  }
  EXPECT_THAT(ReadProcessStats(proc()), IsOk());
}

TEST(ProcessMetricsTest, ReadsTheCurrentProcess) {
  const auto before = ReadProcessStats();
  ASSERT_THAT(before, IsOk());
  const std::ifstream one_more("/proc/self/stat");
  const auto stats = ReadProcessStats();
  ASSERT_THAT(stats, IsOk());
  EXPECT_EQ(stats->open_fds, before->open_fds + 1);
  EXPECT_LE(before->cpu, stats->cpu);
  EXPECT_LT(stats->start, absl::Now());
  EXPECT_GT(stats->start, absl::Now() - absl::Hours(1));
  EXPECT_GT(stats->resident_bytes, 1 << 20);
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur != RLIM_INFINITY) {
    EXPECT_EQ(stats->max_fds, static_cast<int64_t>(limit.rlim_cur));
  }
}

}  // namespace
}  // namespace linnet::server
