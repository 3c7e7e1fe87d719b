#include "model/runtime/tokenizer/names.h"

#include "gmock/gmock.h"

namespace linnet::model {
namespace {

TEST(NamesTest, FindsTheFirstThatATextStartsWithInAnyCase) {
  const Names names({"<ph1>", "KX7", "<ph10>", "<ph1"});
  EXPECT_EQ(names.StartOf("<PH1> is"), 0);
  EXPECT_EQ(names.StartOf("<ph10>"), 2);
  EXPECT_EQ(names.StartOf("<ph1"), 3);
  EXPECT_EQ(names.StartOf("kx7"), 1);
  EXPECT_EQ(names.StartOf("kx"), -1);
  EXPECT_EQ(names.StartOf(" KX7"), -1);
  EXPECT_EQ(names.StartOf(""), -1);
  EXPECT_EQ(Names().StartOf("KX7"), -1);
}

TEST(NamesTest, FindsThoseThatOccur) {
  const Names names({"<ph1>", "KX7", "ZB4"});
  EXPECT_THAT(names.In("akx7 <ph1 zb"), ::testing::ElementsAre(false, true, false));
  EXPECT_THAT(names.In("<PH1>KX7ZB4"), ::testing::Each(true));
  EXPECT_THAT(names.In(""), ::testing::Each(false));
}

}  // namespace
}  // namespace linnet::model
