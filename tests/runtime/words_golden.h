#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/places.h"

namespace linnet::model {

// A file of tests/data.
inline std::filesystem::path TestData(const std::string& name) {
  return SourceDir() / "tests/data" / name;
}

inline std::string TestDataContents(const std::string& name) {
  std::ifstream stream(TestData(name), std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

// Results of sacremoses, subword-nmt and SentencePiece (tests/data/make_words.py).
inline const nlohmann::json& GoldenWords() {
  static const nlohmann::json golden = nlohmann::json::parse(TestDataContents("words.json"));
  return golden;
}

}  // namespace linnet::model
