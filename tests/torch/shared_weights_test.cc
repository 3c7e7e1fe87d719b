// Packed weights that an engine shares with other processes, beside private ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/torch/decoding.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;
using ::linnet::IsOk;
using ::linnet::model::testing::DecodeInBatches;
using ::linnet::model::testing::SameAnswers;
using ::linnet::model::testing::TinyBundle;

bool IsMapped(const fs::path& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(file.string())) return true;
  }
  return false;
}

class SharedWeightsTest : public ::testing::TestWithParam<const char*> {
 protected:
  SharedWeightsTest() : bundle_(TinyBundle()) {
    fs::copy(bundle_.model_file(), folder_.path() / "tiny.pt");
    bundle_.path = folder_.path();
    bundle_.manifest.set_model_file("tiny.pt");
    file_ = folder_.path() / (std::string("tiny.") + GetParam() + ".packed");
  }

  // The same sequences in the same batches; `mapped` says whether the weights are in the file.
  std::map<SequenceId, std::vector<Hypothesis>> Answers(bool mapped) {
    const auto compute = ParseComputeType(GetParam());
    EXPECT_THAT(compute, IsOk());
    auto engine = MakeTorchEngine(
        bundle_, {.compute = *compute, .threads = 2, .rows = 40, .encoder_cache_tokens = 640});
    EXPECT_THAT(engine, IsOk());
    EXPECT_EQ(IsMapped(file_), mapped);
    std::mt19937 random(3);
    return DecodeInBatches(**engine, 40, random);
  }

  void ExpectSame(const std::map<SequenceId, std::vector<Hypothesis>>& got,
                  const std::map<SequenceId, std::vector<Hypothesis>>& want) {
    ASSERT_FALSE(want.empty());
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [id, hypotheses] : want) EXPECT_TRUE(SameAnswers(got.at(id), hypotheses));
  }

  test::TemporaryFolder folder_;
  Bundle bundle_;
  fs::path file_;
};

TEST_P(SharedWeightsTest, AnswersHaveTheBitsOfPrivateOnes) {
  fs::create_directory(file_);  // takes the place of the file
  const auto private_answers = Answers(/*mapped=*/false);
  fs::remove(file_);
  ExpectSame(Answers(/*mapped=*/true), private_answers);  // makes the file
  const auto made = fs::last_write_time(file_);
  ExpectSame(Answers(/*mapped=*/true), private_answers);
  EXPECT_EQ(fs::last_write_time(file_), made);
}

TEST_P(SharedWeightsTest, AnotherModelsFileIsReplaced) {
  const auto answers = Answers(/*mapped=*/true);
  const auto bytes = static_cast<int64_t>(fs::file_size(file_));
  fs::remove(file_);
  std::ofstream(file_) << std::string(bytes, 'x');
  ExpectSame(Answers(/*mapped=*/true), answers);
}

INSTANTIATE_TEST_SUITE_P(Types, SharedWeightsTest, ::testing::Values("float32", "int8"));

}  // namespace
}  // namespace linnet::model
