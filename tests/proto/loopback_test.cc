#include "proto/loopback.h"

#include "gmock/gmock.h"

namespace linnet {
namespace {

TEST(LoopbackTest, NameThatBeginsLikeAnAddressIsNotLoopback) {
  for (const char* address : {"127.0.0.1:50051", "127.8.9.1:1", "[::1]:50051", "localhost:0"})
    EXPECT_TRUE(IsLoopback(address)) << address;
  for (const char* address : {"127.0.0.1.example.org:50051", "localhost.example.org:1",
                              "0.0.0.0:50051", "[::]:50051", "128.0.0.1:1", ""})
    EXPECT_FALSE(IsLoopback(address)) << address;
}

}  // namespace
}  // namespace linnet
