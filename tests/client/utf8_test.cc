#include "client/library/utf8.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace linnet::client {
namespace {

using ::testing::Optional;

// Encodes by definition, also code points that must not be encoded.
std::string Encode(uint32_t point, int bytes) {
  if (bytes == 1) return std::string(1, static_cast<char>(point));
  std::string text;
  for (int i = bytes - 1; i > 0; --i) {
    text.insert(text.begin(), static_cast<char>(0x80 | (point & 0x3F)));
    point >>= 6;
  }
  constexpr int kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  text.insert(text.begin(), static_cast<char>(kLead[bytes] | point));
  return text;
}

int ShortestLength(uint32_t point) {
  return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

TEST(Utf8Test, AcceptsOnlyTheShortestFormOfEveryCodePoint) {
  for (uint32_t point = 0; point < 0x120000; ++point) {
    const bool scalar = point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
    for (int bytes = ShortestLength(point); bytes <= 4; ++bytes) {
      const bool good = scalar && bytes == ShortestLength(point);
      const std::string text = "ab" + Encode(point, bytes) + "c";
      ASSERT_EQ(FindInvalidUtf8(text), good ? std::nullopt : std::optional<size_t>(2))
          << "code point " << point << " in " << bytes << " bytes";
    }
  }
}

TEST(Utf8Test, FindsTheStartOfATruncatedCharacter) {
  const std::string bird = "\xF0\x9F\x90\xA6";
  for (size_t kept = 1; kept < bird.size(); ++kept) {
    EXPECT_THAT(FindInvalidUtf8("ab" + bird.substr(0, kept)), Optional(2)) << kept;
    EXPECT_THAT(FindInvalidUtf8("ab" + bird.substr(0, kept) + "cdef"), Optional(2)) << kept;
  }
  EXPECT_EQ(FindInvalidUtf8(bird), std::nullopt);
}

TEST(Utf8Test, FindsLoneContinuationAndInvalidBytes) {
  for (int byte : {0x80, 0xBF, 0xC0, 0xC1, 0xF5, 0xFE, 0xFF}) {
    EXPECT_THAT(FindInvalidUtf8(std::string("ü") + static_cast<char>(byte)), Optional(2)) << byte;
  }
  EXPECT_EQ(FindInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8(std::string("\0", 1)), std::nullopt);
}

TEST(Utf8Test, MessageNamesTextByteAndOffset) {
  EXPECT_THAT(CheckUtf8("argument 2", "Gr\xFC\xDF"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "argument 2 is not UTF-8: byte 0xfc at offset 2"));
  EXPECT_THAT(CheckUtf8("argument 2", "Grüß"), IsOk());
  for (const std::string& utf16 : {std::string("\xFF\xFEH\0", 4), std::string("\xFE\xFF\0H", 4)}) {
    EXPECT_THAT(CheckUtf8("letter.txt", utf16).message(),
                testing::HasSubstr("begins like UTF-16: convert it with iconv -f UTF-16"));
  }
}

}  // namespace
}  // namespace linnet::client
