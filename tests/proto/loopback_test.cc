#include "proto/loopback.h"

#include "gmock/gmock.h"

namespace linnet {
namespace {

TEST(LoopbackTest, NameThatBeginsLikeAnAddressIsNotLoopback) {
  for (const char* address : {"127.0.0.1:50051", "127.8.9.1:1", "[::1]:50051", "localhost:0"})
    EXPECT_TRUE(IsLoopback(address)) << address;
  for (const char* address :
       {"127.0.0.1.example.org:50051", "localhost.example.org:1", "0.0.0.0:50051", "[::]:50051",
        "128.0.0.1:1", "127.0.0.1 evil:1", "[::ffff:128.0.0.1]:1", "[127.0.0.1", "[", ":", ""})
    EXPECT_FALSE(IsLoopback(address)) << address;
}

TEST(LoopbackTest, EverySpellingOfThisMachineIsLoopback) {
  for (const char* address :
       {"LOCALHOST:50051", "Localhost.:50051", "localhost", "127.1:50051", "2130706433:50051",
        "0x7f.0.0.1:50051", "[0:0:0:0:0:0:0:1]:50051", "[::0001]:50051", "::1", "[::1]",
        "[::ffff:127.0.0.1]:50051", "[::FFFF:7f00:1]:50051"})
    EXPECT_TRUE(IsLoopback(address)) << address;
}

TEST(LoopbackTest, HostIsReadWithAndWithoutAPort) {
  EXPECT_EQ(HostPart("a.example:1"), "a.example");
  EXPECT_EQ(HostPart("a.example"), "a.example");
  EXPECT_EQ(HostPart("[fe80::1]:1"), "fe80::1");
  EXPECT_EQ(HostPart("fe80::1"), "fe80::1");
  EXPECT_EQ(HostPart(""), "");
}

}  // namespace
}  // namespace linnet
