// The engine with a shortlist, which limits searches to some tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/ops/pack_linear.h"
#include "model/runtime/search/shortlist.h"
#include "model/torch/torch_engine.h"
#include "tests/support/status_matchers.h"
#include "tests/torch/tiny_model.h"

namespace linnet::model {
namespace {

using ::linnet::IsOk;
using ::linnet::model::testing::TinyBundle;
using ::linnet::model::testing::TinyModel;
using ::testing::HasSubstr;

using Results = std::map<SequenceId, std::vector<Hypothesis>>;

// The tiny bundle with a shortlist of `each` random targets per source token.
Bundle WithShortlist(const Bundle& of, int each, int seed) {
  std::mt19937 random(seed);
  std::vector<int> candidates;
  for (int i = 0; i < TinyModel::kVocabulary; ++i) {
    std::vector<int> tokens(TinyModel::kVocabulary);
    std::iota(tokens.begin(), tokens.end(), 0);
    std::shuffle(tokens.begin(), tokens.end(), random);
    candidates.insert(candidates.end(), tokens.begin(), tokens.begin() + each);
  }
  Bundle bundle = of;
  const std::string name = absl::StrCat("shortlist-", each, "-", seed, ".json");
  std::ofstream(bundle.path / name)
      << R"({"always": [4], "counts": [)"
      << absl::StrJoin(std::vector<int>(TinyModel::kVocabulary, each), ",")
      << R"(], "candidates": [)" << absl::StrJoin(candidates, ",") << "]}";
  bundle.manifest.set_shortlist_file(name);
  return bundle;
}

absl::StatusOr<std::unique_ptr<Engine>> Make(const Bundle& bundle, ShortlistUse shortlist,
                                             ComputeType compute = ComputeType::kFloat32,
                                             int threads = 2) {
  return MakeTorchEngine(bundle, {.compute = compute,
                                  .threads = threads,
                                  .rows = 60,
                                  .encoder_cache_tokens = 640,
                                  .shortlist = shortlist});
}

absl::StatusOr<std::unique_ptr<Engine>> Make(const Bundle& bundle, bool shortlist,
                                             ComputeType compute = ComputeType::kFloat32,
                                             int threads = 2) {
  return Make(bundle, shortlist ? ShortlistUse::kAlways : ShortlistUse::kNever, compute, threads);
}

SequenceInput Sequence(SequenceId id, int tokens, int beam) {
  std::mt19937 random(id);
  SequenceInput input;
  input.id = id;
  while (std::ssize(input.source) + 1 < tokens) input.source.push_back(4 + random() % 41);
  input.source.push_back(2);
  input.options.beam_size = input.options.n_best = beam;
  input.options.max_target_tokens = TinyModel::kMaxTargetTokens;
  return input;
}

// Adds sequence i before step i * `apart`.
Results Decode(Engine& engine, const std::vector<SequenceInput>& inputs, int apart) {
  Results results;
  size_t next = 0;
  for (int step = 0; next < inputs.size() || engine.sequences() > 0; ++step) {
    while (next < inputs.size() && static_cast<int>(next) * apart <= step &&
           engine.HasRoom({&inputs[next], 1})) {
      EXPECT_THAT(engine.Add({&inputs[next++], 1}), IsOk());
    }
    auto events = engine.Step();
    EXPECT_THAT(events, IsOk());
    if (!events.ok()) break;
    for (SequenceEvent& event : *events) {
      EXPECT_THAT(event.status, IsOk());
      if (event.finished) results[event.id] = std::move(event.hypotheses);
    }
  }
  return results;
}

void ExpectSame(const std::vector<Hypothesis>& got, const std::vector<Hypothesis>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].tokens, want[i].tokens);
    EXPECT_EQ(got[i].token_scores, want[i].token_scores);
    EXPECT_EQ(got[i].score, want[i].score);
  }
}

std::vector<SequenceInput> Some() {
  std::vector<SequenceInput> inputs;
  for (int id = 1; id <= 12; ++id) inputs.push_back(Sequence(id, 1 + id * 3 % 11, 1 + id % 5));
  inputs[3].prefix = {10, 41, 6};  // forced, on the shortlist or not
  inputs[5].options.unknown_penalty = 2;
  inputs[7].options.no_repeat_ngram_size = 2;
  return inputs;
}

TEST(ShortlistEngineTest, ShortlistOfAllTokensChangesNothing) {
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kInt8}) {
    const Bundle bundle = WithShortlist(TinyBundle(), TinyModel::kVocabulary, 1);
    auto all = Make(bundle, false, compute), listed = Make(bundle, true, compute);
    ASSERT_THAT(all, IsOk());
    ASSERT_THAT(listed, IsOk());
    const Results want = Decode(**all, Some(), 1), got = Decode(**listed, Some(), 1);
    ASSERT_EQ(got.size(), Some().size());
    for (const auto& [id, hypotheses] : want) ExpectSame(got.at(id), hypotheses);
  }
}

TEST(ShortlistEngineTest, LimitsTargetsAndIsBatchInvariant) {
  const Bundle bundle = WithShortlist(TinyBundle(), 5, 2);
  const auto list = Shortlist::Read(bundle.path / bundle.manifest.shortlist_file(),
                                    TinyModel::kVocabulary, TinyModel::kVocabulary, {});
  ASSERT_THAT(list, IsOk());
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kInt8}) {
    auto engine = Make(bundle, true, compute), one_thread = Make(bundle, true, compute, 1);
    ASSERT_THAT(engine, IsOk());
    ASSERT_THAT(one_thread, IsOk());
    Results alone;
    for (const SequenceInput& input : Some()) {
      alone.merge(Decode(**one_thread, {input}, 0));
      const auto tokens = list->TokensFor(input.source, input.prefix);
      for (const Hypothesis& hypothesis : alone.at(input.id)) {
        for (const TokenId token : hypothesis.tokens) {
          EXPECT_TRUE(std::binary_search(tokens.begin(), tokens.end(), token)) << token;
        }
      }
    }
    for (const int apart : {0, 1, 3}) {
      const Results together = Decode(**engine, Some(), apart);
      for (const auto& [id, hypotheses] : alone) ExpectSame(together.at(id), hypotheses);
    }
  }
}

TEST(ShortlistEngineTest, SamplingAndScoringUseTheWholeVocabulary) {
  const Bundle bundle = WithShortlist(TinyBundle(), 3, 3);
  auto all = Make(bundle, false), listed = Make(bundle, true);
  ASSERT_THAT(all, IsOk());
  ASSERT_THAT(listed, IsOk());
  std::vector<SequenceInput> free;
  free.push_back(Sequence(20, 9, 3));
  free.back().options.seed = 4;
  free.push_back(Sequence(21, 7, 1));
  free.back().target = std::vector<TokenId>{5, 17, 33, 40, 2};
  const Results want = Decode(**all, free, 0);
  std::vector<SequenceInput> both = Some();
  both.insert(both.begin() + 2, free[0]);
  both.insert(both.begin() + 7, free[1]);
  for (const int apart : {0, 1}) {
    const Results got = Decode(**listed, both, apart);
    for (const auto& [id, hypotheses] : want) ExpectSame(got.at(id), hypotheses);
    for (const SequenceInput& input : Some()) {
      ExpectSame(got.at(input.id), Decode(**listed, {input}, 0).at(input.id));
    }
  }
}

// Expects that the engine of a bundle uses its shortlist or not, and says so before it is loaded.
void ExpectUse(const Bundle& bundle, ShortlistUse use, bool wanted,
               ComputeType compute = ComputeType::kFloat32) {
  const auto engine = Make(bundle, use, compute);
  ASSERT_THAT(engine, IsOk());
  EXPECT_EQ((*engine)->info().shortlist, wanted);
  const auto info =
      TorchEngineInfo(bundle, {.compute = compute, .encoder_cache_tokens = 640, .shortlist = use});
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->shortlist, wanted);
}

TEST(ShortlistEngineTest, AutoDoesWhatTheManifestSays) {
  Bundle bundle = WithShortlist(TinyBundle(), 3, 4);
  ExpectUse(bundle, ShortlistUse::kAuto, false);
  ExpectUse(bundle, ShortlistUse::kAlways, true);
  ExpectUse(bundle, ShortlistUse::kNever, false);
  bundle.manifest.set_shortlist_by_default(true);
  ExpectUse(bundle, ShortlistUse::kAuto, true);
  ExpectUse(bundle, ShortlistUse::kAlways, true);
  ExpectUse(bundle, ShortlistUse::kNever, false);
}

TEST(ShortlistEngineTest, AutoLimitsTheSearchAsAlwaysDoes) {
  Bundle bundle = WithShortlist(TinyBundle(), 3, 5);
  bundle.manifest.set_shortlist_by_default(true);
  auto with = Make(bundle, ShortlistUse::kAlways), by_default = Make(bundle, ShortlistUse::kAuto);
  ASSERT_THAT(with, IsOk());
  ASSERT_THAT(by_default, IsOk());
  const Results want = Decode(**with, Some(), 1), got = Decode(**by_default, Some(), 1);
  for (const auto& [id, hypotheses] : want) ExpectSame(got.at(id), hypotheses);
}

TEST(ShortlistEngineTest, ABundleWithoutShortlistIsSearchedWithout) {
  for (const auto use : {ShortlistUse::kAuto, ShortlistUse::kAlways, ShortlistUse::kNever})
    ExpectUse(TinyBundle(), use, false);
}

TEST(ShortlistEngineTest, OnlyAlwaysRefusesATypeWithoutShortlists) {
  if (!ops::HasBfloat16Gemm()) GTEST_SKIP() << "this processor has no gemm in bfloat16";
  Bundle bundle = WithShortlist(TinyBundle(), 3, 4);
  bundle.manifest.set_shortlist_by_default(true);
  EXPECT_THAT(
      std::string(Make(bundle, true, ComputeType::kBfloat16).status().message()),
      HasSubstr("a shortlist needs float32 or int8 on the CPU, this is bfloat16 on cpu: set "
                "shortlist to auto or false"));
  ExpectUse(bundle, ShortlistUse::kAuto, false, ComputeType::kBfloat16);
  ExpectUse(TinyBundle(), ShortlistUse::kAlways, false, ComputeType::kBfloat16);
}

TEST(ShortlistEngineTest, NamesOfUsesAreParsed) {
  EXPECT_EQ(*ParseShortlistUse("auto"), ShortlistUse::kAuto);
  EXPECT_EQ(*ParseShortlistUse("true"), ShortlistUse::kAlways);
  EXPECT_EQ(*ParseShortlistUse("false"), ShortlistUse::kNever);
  EXPECT_THAT(ParseShortlistUse("on").status().message(),
              HasSubstr("shortlist \"on\" is unknown, there are auto, true and false"));
}

}  // namespace
}  // namespace linnet::model
