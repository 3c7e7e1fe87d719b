#include "server/models/health_reader.h"

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/waited_sink.h"

namespace linnet::server {
namespace {

using State = EngineHealth::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct HealthReaderTest : ::testing::Test {
  HealthReaderTest() {
    TextFixture::WriteBundles(folder.path());
    auto loaded = Catalog::Load(
        folder.path(),
        [this](const model::Bundle&) -> absl::StatusOr<std::unique_ptr<model::Engine>> {
          if (refused) return absl::InternalError("no device");
          test::EchoEngine::Options options = engine;
          options.device_lost = [this] { return lost.load(); };
          return std::make_unique<test::EchoEngine>(options);
        },
        {}, metrics, nullptr, 0, {.supervisor = &supervisor});
    EXPECT_THAT(loaded, IsOk());
    catalog = *std::move(loaded);
    reader = std::make_unique<HealthReader>(*catalog, supervisor);
    UntilIdle();
  }
  void UntilIdle() {
    while (!supervisor.idle_period().has_value()) absl::SleepFor(absl::Milliseconds(1));
  }
  // One call of the first model.
  void Call() {
    test::Waited waited;
    std::vector<std::unique_ptr<Sequence>> one;
    one.push_back(test::Say({5, 6}, waited));
    EXPECT_THAT(catalog->models().front()->scheduler->Submit(one), IsOk());
    waited.status().IgnoreError();
  }

  const test::TemporaryFolder folder;
  test::EchoEngine::Options engine;
  std::atomic<bool> refused = false, lost = false;
  Supervisor supervisor{[] {}};
  Metrics metrics;
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<HealthReader> reader;
};

TEST_F(HealthReaderTest, ReadsNoModelAgainWhileAllAreIdle) {
  EXPECT_TRUE(reader->Read());
  const auto models = static_cast<int64_t>(reader->health().models.size());
  ASSERT_GE(models, 2);
  for (int tick = 0; tick < 100; ++tick) EXPECT_FALSE(reader->Read());
  EXPECT_EQ(reader->models_read(), models);
  Call();
  UntilIdle();
  EXPECT_FALSE(reader->Read()) << "a call that succeeds changes no health";
  EXPECT_EQ(reader->models_read(), 2 * models);
  for (int tick = 0; tick < 100; ++tick) EXPECT_FALSE(reader->Read());
  EXPECT_EQ(reader->models_read(), 2 * models);
}

TEST_F(HealthReaderTest, SeesAFailureAtTheNextRead) {
  EXPECT_TRUE(reader->Read());
  lost = true;
  Call();
  while (catalog->models().front()->scheduler->health().state == State::kUp)
    absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(reader->Read());
  EXPECT_EQ(reader->health().models.front().state, State::kFailed);
}

TEST_F(HealthReaderTest, SeesReloadsWithoutAnyEngine) {
  EXPECT_TRUE(reader->Read());
  EXPECT_THAT(reader->health().missing, IsEmpty());
  const size_t models = reader->health().models.size();
  const auto name = catalog->models().front()->path;
  std::filesystem::rename(name, folder.path() / ".moved");
  catalog->Reload();
  EXPECT_TRUE(reader->Read());
  EXPECT_EQ(reader->health().models.size(), models - 1);
  refused = true;
  std::filesystem::rename(folder.path() / ".moved", name);
  catalog->Reload();
  EXPECT_TRUE(reader->Read());
  EXPECT_THAT(reader->health().missing, ElementsAre(name.filename()));
}

}  // namespace
}  // namespace linnet::server
