#!/usr/bin/env bash
# ICU's FilteredBreakIterator joins two sentences when the last word of the first one merely ends as an abbreviation does.
#
# Guess before the run: a suppression is a word, so "no." does not hold back a break after "piano.".
# Seen (ICU 72.1 of Debian 12, packages 72.1-3+deb12u1, x86-64), the number of sentences without and with suppressions:
#
#   own list with "no."    2 -> 1    He played the piano. She left.
#   own list with "no."    2 -> 2    He played the flute. She left.
#   list of en             2 -> 1    I opened the app. The map was empty.
#   list of en             2 -> 2    I opened the map. The app was empty.
#   list of en             2 -> 1    She met the CEO. He smiled.
#   list of fr             2 -> 1    Elle travaille chez AMD. Il part.
#   list of pt             2 -> 1    Ele vive no Brasil. Trabalha em casa.
#   list of pt             2 -> 1    Foi em abril. Não elaborou.
#   list of pt             2 -> 2    Foi em maio. Não elaborou.
#
# The text before the break is compared with the list from its end backwards, without a test that a word begins there. English has
# "pp." (app) and "O." (CEO), French has "D." (AMD), and Portuguese has "l." (Brasil, abril, and each other word that ends so).
#
# Who meets it: callers of FilteredBreakIteratorBuilder, and of locales with the keyword ss=standard, which use the same lists.
#
# This script needs Debian 12, its g++ and its package lists. Packages are unpacked below a temporary folder and not installed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=72.1-3+deb12u1
apt-get download -qq -o APT::Sandbox::User=root "libicu72=$version" "libicu-dev=$version"
for package in ./*.deb; do dpkg -x "$package" debian; done

cat >split.cc <<'C'
#include <cstdio>
#include <memory>
#include <string>

#include <unicode/brkiter.h>
#include <unicode/filteredbrk.h>
#include <unicode/unistr.h>

struct Case {
  const char* language;
  const char* own;  // the only suppression, or null for the list of the language
  int expected;
  const char* text;
};

constexpr Case kCases[] = {
    {"en", "no.", 1, "He played the piano. She left."},
    {"en", "no.", 2, "He played the flute. She left."},
    {"en", nullptr, 1, "I opened the app. The map was empty."},
    {"en", nullptr, 2, "I opened the map. The app was empty."},
    {"en", nullptr, 1, "She met the CEO. He smiled."},
    {"fr", nullptr, 1, "Elle travaille chez AMD. Il part."},
    {"pt", nullptr, 1, "Ele vive no Brasil. Trabalha em casa."},
    {"pt", nullptr, 1, "Foi em abril. Não elaborou."},
    {"pt", nullptr, 2, "Foi em maio. Não elaborou."},
};

int CountSentences(icu::BreakIterator& sentences, const char* text) {
  const icu::UnicodeString unicode = icu::UnicodeString::fromUTF8(text);
  sentences.setText(unicode);
  int count = 0;
  for (sentences.first(); sentences.next() != icu::BreakIterator::DONE;) ++count;
  return count;
}

int main() {
  bool as_described = std::string(U_ICU_VERSION) == "72.1";
  for (const Case& it : kCases) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Locale locale(it.language);
    std::unique_ptr<icu::BreakIterator> plain(icu::BreakIterator::createSentenceInstance(locale, status));
    std::unique_ptr<icu::FilteredBreakIteratorBuilder> builder(
        it.own != nullptr ? icu::FilteredBreakIteratorBuilder::createEmptyInstance(status)
                          : icu::FilteredBreakIteratorBuilder::createInstance(locale, status));
    if (U_FAILURE(status)) return 2;
    if (it.own != nullptr) builder->suppressBreakAfter(icu::UnicodeString::fromUTF8(it.own), status);
    std::unique_ptr<icu::BreakIterator> filtered(builder->build(plain->clone(), status));
    if (U_FAILURE(status)) return 2;
    const int before = CountSentences(*plain, it.text), after = CountSentences(*filtered, it.text);
    const std::string list = it.own != nullptr ? std::string("own list with \"") + it.own + "\""
                                               : std::string("list of ") + it.language;
    std::printf("%-23s%d -> %d    %s\n", list.c_str(), before, after, it.text);
    as_described = as_described && before == 2 && after == it.expected;
  }
  return as_described ? 0 : 1;
}
C
library=$(dirname debian/usr/lib/*/libicuuc.so.72)
g++ -std=c++17 -Idebian/usr/include split.cc -L"$library" -licuuc -licudata -o split
LD_LIBRARY_PATH=$library ./split
echo "as described"
