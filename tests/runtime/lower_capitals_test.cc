#include "model/runtime/tokenizer/lower_capitals.h"

#include <gtest/gtest.h>

#include <string>

namespace linnet::model {
namespace {

TEST(LowerCapitals, WritesATextInCapitalsAsSentences) {
  const struct {
    const char* language;
    const char* text;
    const char* lower;
  } rows[] = {
      {"en", "THE DOG RUNS.", "The dog runs."},
      {"en", "\"STOP!\" HE SAID. RUN!", "\"Stop!\" He said. Run!"},
      {"en", "24 HOURS LEFT", "24 hours left"},
      {"en", "I KNOW WHAT I'M DOING.", "I know what I'm doing."},
      {"pt", "I KNOW WHAT I'M DOING.", "I know what i'm doing."},
      {"de", "ÄPFEL ÜBER ÖL", "Äpfel über öl"},
      {"tr", "IŞIK İYİ, ISI DA.", "Işık iyi, ısı da."},
      {"tr", "İYİ IŞIK", "İyi ışık"},
      {"el", "Ο ΣΚΥΛΟΣ ΤΡΕΧΕΙ.", "Ο σκυλος τρεχει."},
      {"ru", "ПРИВЕТ, МИР!", "Привет, мир!"},
      {"en", "THE BBC HAS COVID-19 AND MP3 FILES, 19TH OF MAY",
       "The BBC has COVID-19 and MP3 files, 19th of may"},
      {"cs", "STRČ PRST SKRZ KRK", "Strč prst skrz krk"},
      {"en", "MR. AND DR. SMITH", "Mr. And dr. Smith"},
      {"en", "ONE\nTWO", "One\nTwo"},
      {"not a language", "THE DOG RUNS.", "The dog runs."},
  };
  for (const auto& row : rows) EXPECT_EQ(LowerCapitals(row.text, row.language), row.lower);
}

TEST(LowerCapitals, LeavesOtherTexts) {
  for (const char* text : {"The dog runs.", "STOP!", "NASA and ESA", "A B C", "BBC CNN", "MP3 B2B",
                           "日本 中国", "", "42"}) {
    EXPECT_EQ(LowerCapitals(text, "en"), std::nullopt) << text;
  }
  EXPECT_EQ(LowerCapitals("STOP!", "en", {.after = " READ THIS!"}), "Stop!");
}

TEST(LowerCapitals, KeepsAbbreviationsOfTheTextAround) {
  const auto lower = [](const char* before, const char* after) {
    return *LowerCapitals("THE EU AND THE US TALK", "en", {.before = before, .after = after});
  };
  EXPECT_EQ(lower("", ""), "The eu and the us talk");
  EXPECT_EQ(lower("Rules of the EU are new. ", " Diplomats from the US came."),
            "The EU and the US talk");
  EXPECT_EQ(lower("EU: the rules are new. ", "\nThey met in the US."), "The EU and the US talk");
  EXPECT_EQ(lower("THE EU SPEAKS. ", " THE US ANSWERS."), "The eu and the us talk")
      << "shouted too";
  EXPECT_EQ(lower("EU TALKS began in Rome. ", ""), "The eu and the us talk") << "may be shouted";
  EXPECT_EQ(lower("They left EUROPE. ", " Say USB now."), "The eu and the us talk")
      << "other words";
  const std::string far = "Rules of the EU are new. " + std::string(600, ' ');
  EXPECT_EQ(lower(far.c_str(), ""), "The eu and the us talk") << "looks at a bounded part";
}

TEST(LowerCapitals, ToCapitalsFollowsTheLanguage) {
  EXPECT_EQ(ToCapitals("Die Straße 2", "de"), "DIE STRASSE 2");
  EXPECT_EQ(ToCapitals("iyi ışık", "tr"), "İYİ IŞIK");
  EXPECT_EQ(ToCapitals("iyi", "en"), "IYI");
  EXPECT_EQ(ToCapitals("Ο σκύλος τρέχει", "el"), "Ο ΣΚΥΛΟΣ ΤΡΕΧΕΙ");
  EXPECT_EQ(ToCapitals("ação", "pt-BR"), "AÇÃO");
  EXPECT_EQ(ToCapitals("ação", "not a language"), "AÇÃO");
}

}  // namespace
}  // namespace linnet::model
