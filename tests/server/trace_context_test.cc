#include "server/base/trace_context.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linnet::server {
namespace {

constexpr char kGood[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContextTest, ReadsValidHeader) {
  const auto trace = ParseTraceParent(kGood);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace->span_id, "00f067aa0ba902b7");
}

TEST(TraceContextTest, ReadsStartOfLaterVersions) {
  std::string later = kGood;
  later[1] = '1';
  EXPECT_TRUE(ParseTraceParent(later).has_value());
  EXPECT_TRUE(ParseTraceParent(later + "-more").has_value());
  EXPECT_FALSE(ParseTraceParent(later + "more").has_value());
}

// The header is returned to the client, and gRPC aborts the process on bytes that it does not send.
TEST(TraceContextTest, IgnoresHeadersThatCannotBeReturned) {
  const std::string later = "01" + std::string(kGood).substr(2) + "-";
  EXPECT_TRUE(ParseTraceParent(later + " ~"));
  for (const char* bytes : {"\x80", "\xff", "\n", "\x7f", "\x1f", "\xc3\xa9"})
    EXPECT_FALSE(ParseTraceParent(later + bytes));
  EXPECT_FALSE(ParseTraceParent(later + std::string(1, '\0')));
  EXPECT_TRUE(ParseTraceParent(later + std::string(512 - later.size(), 'x')));
  EXPECT_FALSE(ParseTraceParent(later + std::string(513 - later.size(), 'x')));
}

TEST(TraceContextTest, IgnoresInvalidHeaders) {
  const std::string good = kGood;
  std::vector<std::string> wrong = {"",         "00",       good + "-more",
                                    good + "0", " " + good, std::string(good.size(), '0')};
  wrong.push_back("ff" + good.substr(2));
  for (size_t i : {2, 35, 52}) {  // a dash is missing
    wrong.push_back(good);
    wrong.back()[i] = '0';
  }
  for (size_t i : {0, 3, 34, 36, 51, 53, 54}) {  // not a lower-case hexadecimal digit
    for (char c : {'A', 'g', '-', ' '}) {
      wrong.push_back(good);
      wrong.back()[i] = c;
    }
  }
  for (size_t length = 0; length < good.size(); ++length) wrong.push_back(good.substr(0, length));
  wrong.push_back("00-" + std::string(32, '0') + good.substr(35));               // no trace
  wrong.push_back(good.substr(0, 36) + std::string(16, '0') + good.substr(52));  // no span
  for (const std::string& header : wrong) EXPECT_FALSE(ParseTraceParent(header)) << header;
}

}  // namespace
}  // namespace linnet::server
