#include "server/port/grpc_library.h"

#include <gtest/gtest.h>

#include <string>

namespace linnet::server {
namespace {

TEST(GrpcLibraryTest, DetectsVersionsWithTheDefect) {
  for (const std::string version : {"1.51.1", "1.52.2", "1.53.1", "1.54.2", "1.55.1", "1.56.1"})
    EXPECT_TRUE((GrpcLibrary{.version = version}.has_header_defect())) << version;
  for (const std::string version :
       {"1.53.2", "1.54.3", "1.55.2", "1.56.2", "1.57.0", "1.66.0-dev", "2.0.0"})
    EXPECT_FALSE((GrpcLibrary{.version = version}.has_header_defect())) << version;
  EXPECT_FALSE((GrpcLibrary{.version = "1.51.1", .patched = true}.has_header_defect()));
}

TEST(GrpcLibraryTest, ReportsLoadedVersion) { EXPECT_FALSE(LoadedGrpc().version.empty()); }

}  // namespace
}  // namespace linnet::server
