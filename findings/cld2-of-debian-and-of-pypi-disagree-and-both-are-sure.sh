#!/usr/bin/env bash
# CLD2 of Debian 12 calls a wrong language reliable for short, plain questions, which CLD2 of PyPI reads correctly.
#
# Guess before the run: the two builds of CLD2 agree, or the one with the wrong answer reports is_reliable = false.
# Seen (Debian's libcld2-0 0.0.0-git20150806-9, tables of 2014-10-16; pycld2 0.42, tables of 2014-02-04; no hints, no flags):
#
#   Debian: rw reliable | Onde está o gato?
#   Debian: sk reliable | Onde está o gato preto?
#   Debian: et reliable | Grazie mille.
#   Debian: gl reliable | Non lo so.
#   Debian: en reliable | Waar is het station?
#   PyPI: pt reliable | Onde está o gato?
#   PyPI: pt reliable | Onde está o gato preto?
#   PyPI: un not reliable | Grazie mille.
#   PyPI: un not reliable | Non lo so.
#   PyPI: un not reliable | Waar is het station?
#
# "Where is the cat?" in Portuguese is Kinyarwanda (rw) for Debian's build, and with a black cat it is Slovak (sk).
#
# Who meets it: programs that were tested with pycld2 and run with the library of the distribution (or the other way round), and
# those that take is_reliable for a filter of short texts. Both builds name themselves "V2.0".
#
# This script needs Debian 12, its g++ and its package lists. Packages are unpacked below a temporary folder and not installed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycld2==0.42
cd "$folder"
version=0.0.0-git20150806-9
apt-get download -qq -o APT::Sandbox::User=root "libcld2-0=$version" "libcld2-dev=$version"
for package in ./*.deb; do dpkg -x "$package" debian; done

cat >texts <<'T'
Onde está o gato?
Onde está o gato preto?
Grazie mille.
Non lo so.
Waar is het station?
T
cat >detect.cc <<'C'
#include <cstdio>
#include <iostream>
#include <string>

#include <cld2/public/compact_lang_det.h>

int main() {
  std::string text;
  while (std::getline(std::cin, text)) {
    CLD2::Language languages[3];
    int percents[3], text_bytes;
    double scores[3];
    bool is_reliable;
    const CLD2::Language language = CLD2::ExtDetectLanguageSummary(
        text.data(), static_cast<int>(text.size()), /*is_plain_text=*/true, /*cld_hints=*/nullptr,
        /*flags=*/0, languages, percents, scores, /*resultchunkvector=*/nullptr, &text_bytes, &is_reliable);
    std::cout << "Debian: " << CLD2::LanguageCode(language) << (is_reliable ? " reliable | " : " not reliable | ")
              << text << "\n";
  }
}
C
library=$(dirname debian/usr/lib/*/libcld2.so.0)
g++ -Idebian/usr/include detect.cc -L"$library" -lcld2 -o detect
{
  LD_LIBRARY_PATH=$library ./detect <texts
  venv/bin/python - <<'P'
import pycld2

with open("texts", encoding="utf-8") as file:
    for text in file.read().splitlines():
        reliable, _, answers = pycld2.detect(text, isPlainText=True)
        print(f"PyPI: {answers[0][1]} {'reliable' if reliable else 'not reliable'} | {text}")
P
} | tee seen
diff - seen <<'T'
Debian: rw reliable | Onde está o gato?
Debian: sk reliable | Onde está o gato preto?
Debian: et reliable | Grazie mille.
Debian: gl reliable | Non lo so.
Debian: en reliable | Waar is het station?
PyPI: pt reliable | Onde está o gato?
PyPI: pt reliable | Onde está o gato preto?
PyPI: un not reliable | Grazie mille.
PyPI: un not reliable | Non lo so.
PyPI: un not reliable | Waar is het station?
T
echo "as described"
