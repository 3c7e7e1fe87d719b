#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/text/two_models_fixture.h"

namespace linnet::server {

// A server with the models en-de and de-fr, and so with English to French through German.
struct PivotServer : TwoModels {
  template <std::invocable<const model::Bundle&> Factory, typename... Rest>
  explicit PivotServer(Factory factory, Rest... rest) : TwoModels(factory, rest...) {
    test::WriteBundle(folder.path() / "de-fr",
                      test::TinyManifest("de-fr", linnet::v1::TASK_TRANSLATE, "de", "fr"));
    EXPECT_TRUE(catalog->Reload().ok());
  }
  PivotServer() : PivotServer(Echo({}, {})) {}
};

inline void WriteModel(TextFixture& server, const std::string& source, const std::string& target) {
  const std::string name = absl::StrCat(source, "-", target);
  test::WriteBundle(server.folder.path() / name,
                    test::TinyManifest(name, linnet::v1::TASK_TRANSLATE, source, target));
}

inline linnet::v1::TranslateRequest To(const std::string& target, std::vector<std::string> contents,
                                       const std::string& source = "en") {
  linnet::v1::TranslateRequest request = ToGerman(std::move(contents));
  request.set_source_language_code(source);
  request.set_target_language_code(target);
  return request;
}

}  // namespace linnet::server
