#include "model/torch/module/step_threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace linnet::model {
namespace {

linnet::v1::Architecture Layers(int encoder, int decoder, int dimension, int feed_forward) {
  linnet::v1::Architecture architecture;
  for (int i = 0; i < encoder; ++i) architecture.add_encoder_mixers("self_attention");
  for (int i = 0; i < decoder; ++i) architecture.add_decoder_mixers("ssru");
  architecture.set_model_dimension(dimension);
  architecture.set_feed_forward_dimension(feed_forward);
  return architecture;
}

constexpr int kShortlist = 1000;

TEST(StepThreads, ASmallStepRunsOnOneThread) {
  const linnet::v1::Architecture student = Layers(6, 2, 256, 1536);
  const StepThreads int8(student, /*int8=*/true, /*threads=*/2);
  EXPECT_EQ(int8.OfStep(1, kShortlist), 1);
  EXPECT_EQ(int8.OfStep(4, 4 * kShortlist), 2) << "a beam of 4";
  EXPECT_EQ(int8.OfStep(1, 32000), 2) << "the whole vocabulary";
  EXPECT_EQ(int8.OfStep(32, 32 * kShortlist), 2) << "a batch";
  EXPECT_EQ(StepThreads(student, /*int8=*/false, 2).OfStep(1, kShortlist), 2) << "float32";
}

TEST(StepThreads, AnEncoderCallFollowsTheStepUnlessItIsLong) {
  const StepThreads student(Layers(6, 2, 256, 1536), /*int8=*/true, /*threads=*/4);
  EXPECT_EQ(student.OfEncoderCall(15, 1, kShortlist), 1);
  EXPECT_EQ(student.OfEncoderCall(15, 32, 32 * kShortlist), 4);
  EXPECT_EQ(student.OfEncoderCall(500, 1, kShortlist), 4);
}

TEST(StepThreads, OtherModelsUseAllThreads) {
  const StepThreads base(Layers(6, 6, 512, 2048), /*int8=*/true, /*threads=*/2);
  EXPECT_EQ(base.OfStep(1, kShortlist), 2);
  EXPECT_EQ(base.OfEncoderCall(2, 1, kShortlist), 2);
  const StepThreads unknown(linnet::v1::Architecture(), /*int8=*/true, /*threads=*/2);
  EXPECT_EQ(unknown.OfStep(1, 1), 2);
  EXPECT_EQ(unknown.OfEncoderCall(1, 1, 1), 2);
}

TEST(ThreadScope, SetsThreadsAndSetsThemBack) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  {
    const ThreadScope scope(1, 3);
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 3);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace linnet::model
