#include "model/runtime/bundle/bundle.h"

#include "tests/runtime/bundle_fixture.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;
using linnet::v1::BundleManifest;
using ::testing::AllOf;
using ::testing::HasSubstr;

// printf weights | sha256sum
constexpr char kWeightsSha[] = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";

TEST_F(BundleTest, ReadsCompleteBundle) {
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_EQ(bundle->manifest.name(), "en-de");
  EXPECT_EQ(bundle->model_file(), folder_ / "model.pt");
  EXPECT_TRUE(bundle->has_tokenizers());
  EXPECT_EQ(bundle->source_tokenizer().subword_file, folder_ / "both.spm");
  EXPECT_EQ(bundle->target_tokenizer().subword_file, folder_ / "both.spm");
  EXPECT_EQ(bundle->source_tokenizer().vocabulary_file, "");
  EXPECT_EQ(bundle->model_sha256(), kWeightsSha);
  EXPECT_EQ(bundle->special_tokens().eos, 2);
  EXPECT_EQ(bundle->special_tokens().unk, 3);
}

TEST_F(BundleTest, ManifestHashIsThatOfTheParsedBytes) {
  const auto bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_EQ(bundle->manifest_sha256, *Sha256OfFile(folder_ / "manifest.json"));
  Write("manifest.json", "{}");
  EXPECT_NE(bundle->manifest_sha256, *Sha256OfFile(folder_ / "manifest.json"));
  EXPECT_EQ(*Sha256OfBytes("{}"), *Sha256OfFile(folder_ / "manifest.json"));
}

TEST_F(BundleTest, DefaultsComeFromTheManifestAndScaleWithTheSource) {
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  const SearchOptions options = bundle->default_options(7);
  EXPECT_EQ(options.beam_size, 4);
  EXPECT_FLOAT_EQ(options.length_penalty, 0.6f);
  EXPECT_EQ(options.min_target_tokens, 1);
  EXPECT_EQ(options.max_target_tokens, 20);  // 1.5 · 7 + 10, rounded down
  EXPECT_EQ(bundle->default_options(256).max_target_tokens, 200);
}

// The manifest holds the ratio as a float; export computes in double.
TEST_F(BundleTest, MaxTargetIsThatOfTheDecimalRatio) {
  for (const double ratio : {0.7, 1.1, 1.3, 1.4, 1.8, 1.9, 2.0}) {
    manifest_.mutable_default_options()->set_max_target_ratio(ratio);
    const auto bundle = Read();
    ASSERT_THAT(bundle, IsOk());
    EXPECT_EQ(bundle->default_options(10).max_target_tokens, std::lround(10 * ratio) + 10) << ratio;
  }
}

TEST_F(BundleTest, MaxTargetDefaultsToTheModelsLimit) {
  manifest_.clear_default_options();
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_EQ(bundle->default_options(3).max_target_tokens, 200);
  EXPECT_EQ(bundle->default_options(3).beam_size, 5);
}

TEST_F(BundleTest, MinTargetNeverExceedsMaxTargetOfAShortSource) {
  manifest_.mutable_default_options()->set_max_target_ratio(1);
  manifest_.mutable_default_options()->set_max_target_tokens(0);
  manifest_.mutable_default_options()->set_min_target_tokens(0);
  ASSERT_THAT(Read(), IsOk());
  EXPECT_EQ(Read()->default_options(2).max_target_tokens, 2);
  EXPECT_LE(Read()->default_options(1).min_target_tokens, 1);
}

TEST_F(BundleTest, TokenizersMayBeAbsent) {
  manifest_.clear_source_tokenizer_file();
  manifest_.clear_target_tokenizer_file();
  manifest_.clear_golden_examples();
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_FALSE(bundle->has_tokenizers());
}

TEST_F(BundleTest, MissingBundleIsNotFound) {
  EXPECT_THAT(ReadBundle(folder_ / "nowhere"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("nowhere"), HasSubstr("manifest.json"))));
}

TEST_F(BundleTest, LoadsTheTokenizerOfEachSide) {
  for (const char* name : {"en.codes", "de.codes", "en.vocab", "de.vocab"}) {
    Write(name, name);
    List(name);
  }
  manifest_.set_source_tokenizer_file("en.codes");
  manifest_.set_target_tokenizer_file("de.codes");
  manifest_.set_source_vocabulary_file("en.vocab");
  manifest_.set_target_vocabulary_file("de.vocab");
  manifest_.set_subword_kind(linnet::v1::SUBWORD_KIND_BPE_CODES);
  manifest_.set_word_tokenizer(linnet::v1::WORD_TOKENIZER_MOSES);
  manifest_.mutable_vocabulary()->set_source_size(300);
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  const TokenizerSpec source = bundle->source_tokenizer(), target = bundle->target_tokenizer();
  EXPECT_EQ(source.subword_file, folder_ / "en.codes");
  EXPECT_EQ(target.subword_file, folder_ / "de.codes");
  EXPECT_EQ(source.vocabulary_file, folder_ / "en.vocab");
  EXPECT_EQ(target.vocabulary_file, folder_ / "de.vocab");
  EXPECT_EQ(source.language_code, "en");
  EXPECT_EQ(target.language_code, "de");
  EXPECT_EQ(source.vocabulary_size, 300);
  EXPECT_EQ(target.vocabulary_size, 400);
  for (const TokenizerSpec& spec : {source, target}) {
    EXPECT_EQ(spec.subword_kind, linnet::v1::SUBWORD_KIND_BPE_CODES);
    EXPECT_EQ(spec.word_tokenizer, linnet::v1::WORD_TOKENIZER_MOSES);
  }
}

TEST_F(BundleTest, NamesDamagedFilesAndReasons) {
  Write("model.pt", "weightz");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "sha256", kWeightsSha});
  Write("model.pt", "weight");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "6 bytes", "7"});
  fs::remove(folder_ / "model.pt");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "missing"});
  fs::create_directory(folder_ / "model.pt");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "not a regular file"});
}

TEST_F(BundleTest, IgnoresUnlistedFiles) {
  Write("MODEL_CARD.md", "anything");
  EXPECT_THAT(Read(), IsOk());
}

}  // namespace
}  // namespace linnet::model
