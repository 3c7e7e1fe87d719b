// Writes the share of prose of each text, for research/bench/prose.py.
//
//   bench_prose < TEXTS
//
// A zero byte ends a text.

#include <iostream>
#include <string>

#include "model/runtime/text/prose.h"

int main() {
  for (std::string text; std::getline(std::cin, text, '\0');)
    std::cout << linnet::model::ProseShare(text) << "\n";
}
