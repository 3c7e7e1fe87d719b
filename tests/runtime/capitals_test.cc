#include "model/runtime/tokenizer/capitals.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/places.h"

namespace linnet::model {
namespace {

constexpr char kMark[] = "<ph0>";

TEST(Capitals, MarksTextsAsInTheTable) {
  // The trainer is tested against the same table.
  std::ifstream file(SourceDir() / "tests/data/capitals.json");
  const nlohmann::json table = nlohmann::json::parse(file);
  ASSERT_GE(table.size(), 10);
  for (const nlohmann::json& row : table) {
    EXPECT_EQ(MarkCapitals(row["text"].get<std::string>(), kMark), row["read"].get<std::string>());
  }
}

TEST(Capitals, DecidesASingleWordByTheTextAround) {
  const struct {
    const char* before;
    const char* text;
    const char* after;
    bool marked;
  } rows[] = {
      {"", "IMPORTANT!", " READ THIS!", true},
      {"READ THIS NOW. ", "IMPORTANT!", "", true},
      {"", "WARNING", "\nDO NOT OPEN", true},
      {"", "STOP!", " 24 HOURS LEFT.", true},
      {"", "ACHTUNG!", " ÖL ÜBERALL!", true},
      {"", "IMPORTANT!", " Read this!", false},
      {"", "IMPORTANT!", " READ this!", false},
      {"He works at ", "IBM.", " NASA.", false},
      {"", "IT", "\tUSA\tUK\nEU", false},
      {"", "USA", "\nUK\nIT\nEU", false},
      {"", "OK!", " I A", false},
      {"READ THIS! ", "Important!", "", false},
      {"READ THIS! ", "I", "", false},
      {"READ THIS! ", "42", "", false},
      {"", "IMPORTANT!", "", false},
  };
  for (const auto& row : rows) {
    const std::string marked =
        MarkCapitals(row.text, kMark, {.before = row.before, .after = row.after});
    EXPECT_EQ(marked != row.text, row.marked) << row.before << "|" << row.text << "|" << row.after;
  }
  EXPECT_EQ(MarkCapitals("IMPORTANT!", kMark, {.after = " READ THIS!"}), "<ph0> Important!");
}

TEST(Capitals, RestoresMarkedTexts) {
  for (const std::string text :
       {"THE DOG RUNS.", "ÄPFEL, ÖL 2 ÜBER", "😀 OH NO 😀", "ПРИВЕТ, МИР!"}) {
    EXPECT_EQ(RestoreCapitals(MarkCapitals(text, kMark), kMark), text);
  }
  EXPECT_EQ(RestoreCapitals("<ph0> Die Straße", kMark), "DIE STRASSE");
}

TEST(Capitals, KeepsAnswerWithoutMark) {
  for (const std::string text : {"Der Hund.", "", "a <ph0> b", " <ph0> b"}) {
    EXPECT_EQ(RestoreCapitals(text, kMark), text);
  }
}

TEST(Capitals, ChangesNothingWithoutAMark) {
  EXPECT_EQ(MarkCapitals("THE DOG RUNS.", ""), "THE DOG RUNS.");
  EXPECT_EQ(RestoreCapitals("<ph0> a", ""), "<ph0> a");
}

TEST(Capitals, RestoredPrefixIsPrefixOfRestoredText) {
  const std::string text = "<ph0> Größe ŉ ﬁ, so ﬆ.";
  const std::string whole = RestoreCapitals(text, kMark);
  for (size_t end = 0; end <= text.size(); ++end) {
    if (end < text.size() && (text[end] & 0xC0) == 0x80) continue;  // within a character
    const std::string part = text.substr(0, end);
    if (!part.starts_with(kMark)) continue;
    EXPECT_TRUE(whole.starts_with(RestoreCapitals(part, kMark))) << part;
  }
}

}  // namespace
}  // namespace linnet::model
