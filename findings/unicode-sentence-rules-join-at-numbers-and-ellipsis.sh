#!/usr/bin/env bash
# ICU does not end a sentence at a full stop before a number with a word in lower case behind it, before a dash, or at the character
# "…". This follows the Unicode rules for sentences (UAX #29).
#
# Guess before the run: ". 37 people" and ". - Yes" begin a sentence as ". Some people" does, and "…" ends one as "..." does.
# Seen (ICU 72.1 of Debian 12, packages 72.1-3+deb12u1, x86-64, locale en), the number of sentences:
#
#   1    The queue was long. 37 people waited.
#   2    The queue was long! 37 people waited.
#   2    The queue was long. 37 People waited.
#   2    The queue was long. Some people waited.
#   1    He left. - Yes, she said.
#   1    He left! - Yes, she said.
#   1    I was tired… We left.
#   2    I was tired... We left.
#
# Rule SB8 looks past digits for the next letter, and a letter in lower case continues the sentence. By rule SB8a a dash (its class
# is SContinue) continues it after any mark. U+2026 is no terminator in the property Sentence_Break, while the last "." of "..." is.
#
# Who meets it: splitters that feed sentences to a translation model, in text where an editor has replaced "..." by "…", in
# dialogues with dashes, and in reports with numbers.
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
#include <unicode/unistr.h>

struct Case {
  int expected;
  const char* text;
};

constexpr Case kCases[] = {
    {1, "The queue was long. 37 people waited."},
    {2, "The queue was long! 37 people waited."},
    {2, "The queue was long. 37 People waited."},
    {2, "The queue was long. Some people waited."},
    {1, "He left. - Yes, she said."},
    {1, "He left! - Yes, she said."},
    {1, "I was tired… We left."},
    {2, "I was tired... We left."},
};

int main() {
  bool as_described = std::string(U_ICU_VERSION) == "72.1";
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> sentences(icu::BreakIterator::createSentenceInstance(icu::Locale("en"), status));
  if (U_FAILURE(status)) return 2;
  for (const Case& it : kCases) {
    const icu::UnicodeString unicode = icu::UnicodeString::fromUTF8(it.text);
    sentences->setText(unicode);
    int count = 0;
    for (sentences->first(); sentences->next() != icu::BreakIterator::DONE;) ++count;
    std::printf("%d    %s\n", count, it.text);
    as_described = as_described && count == it.expected;
  }
  return as_described ? 0 : 1;
}
C
library=$(dirname debian/usr/lib/*/libicuuc.so.72)
g++ -std=c++17 -Idebian/usr/include split.cc -L"$library" -licuuc -licudata -o split
LD_LIBRARY_PATH=$library ./split
echo "as described"
