#include "model/ops/cpu/log_normalizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace linnet::ops {
namespace {

TEST(LogNormalizerTest, AgreesWithDouble) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 5.0f);
  for (int count : {1, 2, 3, 7, 8, 15, 16, 17, 100, 8001}) {
    for (float temperature : {0.3f, 1.0f, 4.0f}) {
      std::vector<float> logits(count);
      for (float& logit : logits) logit = normal(random);
      double sum = 0;
      for (float logit : logits) sum += std::exp(double{logit} / temperature);
      // 1e-6 relative: float32 keeps 24 bits, of a sum of up to 8001 terms and of logit /
      // temperature up to 70.
      EXPECT_NEAR(LogNormalizer(logits.data(), count, temperature), std::log(sum),
                  1e-6 * (16 + std::abs(std::log(sum))))
          << count << " " << temperature;
    }
  }
}

TEST(LogNormalizerTest, HandlesLargeLogitsAndNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> large = {1000.0f, 1000.0f, -kInfinity};
  EXPECT_FLOAT_EQ(LogNormalizer(large.data(), 3, 1.0f), 1000.0f + std::log(2.0f));
  for (int place = 0; place < 40; ++place) {
    std::vector<float> logits(40, 1.0f);
    logits[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(LogNormalizer(logits.data(), 40, 1.0f))) << place;
  }
  const std::vector<float> nothing(20, -kInfinity);
  EXPECT_FALSE(std::isfinite(LogNormalizer(nothing.data(), 20, 1.0f)));
}

}  // namespace
}  // namespace linnet::ops
