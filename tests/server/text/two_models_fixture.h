#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "linnet/v1/text_service.pb.h"
#include "tests/server/text/text_fixture.h"
#include "tests/support/search_engine.h"

namespace linnet::server {

// A server whose calls may need two models, en-de and one that reads German.
struct TwoModels : TextFixture {
  static bool IsSecond(const model::Bundle& bundle) {
    return bundle.manifest.source_language_code() == "de";
  }
  // Echo engines with options of their own.
  static auto Echo(test::EchoEngine::Options first, test::EchoEngine::Options second) {
    return [first, second](const model::Bundle& bundle) {
      test::EchoEngine::Options options = IsSecond(bundle) ? second : first;
      options.limits = kTinyLimits;
      return std::make_unique<test::EchoEngine>(options);
    };
  }
  // Real searches over noise, different for each model.
  static auto Noise(uint64_t seed) {
    return [seed](const model::Bundle& bundle) {
      return std::make_unique<test::SearchEngine>(400, kTinyLimits, 2 * seed + IsSecond(bundle));
    };
  }

  template <std::invocable<const model::Bundle&> Factory, typename... Rest>
  explicit TwoModels(Factory factory, Rest... rest) : TextFixture(factory, rest...) {}

  linnet::v1::TranslateResponse Translated(const linnet::v1::TranslateRequest& request) {
    linnet::v1::TranslateResponse response;
    EXPECT_THAT(Call(&TextCalls::Translate, request, response), IsOk());
    return response;
  }
};

inline std::string WithoutTimings(linnet::v1::TranslateResponse response) {
  response.clear_timings();
  return response.DebugString();  // which sorts maps; bytes do not
}

inline std::string TextOf(const std::string& text, const linnet::v1::Segment& segment) {
  return text.substr(segment.target_begin(), segment.target_end() - segment.target_begin());
}

}  // namespace linnet::server
