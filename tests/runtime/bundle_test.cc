#include "model/runtime/bundle.h"

#include <fstream>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "model/runtime/sha256.h"
#include "tests/support/status_matchers.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;
using linnet::v1::BundleManifest;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

// printf weights | sha256sum
constexpr char kWeightsSha[] = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";

constexpr char kManifest[] = R"({
  "schema_version": 1, "name": "en-de", "version": "2026-11-21", "task": "TASK_TRANSLATE",
  "source_language_code": "en", "target_language_code": "de",
  "architecture": {
    "encoder_mixers": ["dynamic_conv", "dynamic_conv"], "encoder_kernel_sizes": [3, 7],
    "decoder_mixers": ["dynamic_conv"], "decoder_kernel_sizes": [3],
    "model_dimension": 64, "feed_forward_dimension": 128, "heads": 4, "parameters": 12345, "weight_type": "bfloat16"},
  "vocabulary": {"size": 400, "bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3},
  "limits": {"max_source_tokens": 256, "max_target_tokens": 200},
  "default_options": {"beam_size": 4, "length_penalty": 0.6, "max_target_ratio": 1.5, "max_target_tokens": 10},
  "model_file": "model.pt", "source_tokenizer_file": "both.spm", "target_tokenizer_file": "both.spm",
  "golden_examples": [{"source_text": "A dog.", "target_text": "Ein Hund."}]
})";

class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name() / "en-de";
    fs::remove_all(folder_.parent_path());
    fs::create_directories(folder_);
    Write("model.pt", "weights");
    Write("both.spm", "pieces");
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(kManifest, &manifest_).ok());
    List("model.pt");
    List("both.spm");
  }

  void Write(const std::string& name, const std::string& contents) {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
  }
  void List(const std::string& name) {
    linnet::v1::BundleFile* file = manifest_.add_files();
    file->set_name(name);
    file->set_bytes(static_cast<int64_t>(fs::file_size(folder_ / name)));
    file->set_sha256(*Sha256OfFile(folder_ / name));
  }
  absl::StatusOr<Bundle> Read() {
    std::string json;
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(manifest_, &json, options).ok());
    Write("manifest.json", json);
    return ReadBundle(folder_);
  }
  // Reads the bundle after a change that must be refused with all of `parts` in the message.
  template <typename Change>
  void ExpectRefusal(Change change, const std::vector<std::string>& parts) {
    const BundleManifest whole = manifest_;
    change(manifest_);
    const absl::StatusOr<Bundle> bundle = Read();
    EXPECT_EQ(bundle.status().code(), absl::StatusCode::kFailedPrecondition) << bundle.status();
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(bundle.status().message()), HasSubstr(part));
    }
    manifest_ = whole;
  }

  fs::path folder_;
  BundleManifest manifest_;
};

TEST_F(BundleTest, WholeBundleIsRead) {
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_EQ(bundle->manifest.name(), "en-de");
  EXPECT_EQ(bundle->model_file(), folder_ / "model.pt");
  EXPECT_TRUE(bundle->has_tokenizers());
  EXPECT_EQ(bundle->source_tokenizer_file(), folder_ / "both.spm");
  EXPECT_EQ(bundle->target_tokenizer_file(), folder_ / "both.spm");
  EXPECT_EQ(bundle->model_sha256(), kWeightsSha);
  EXPECT_EQ(bundle->special_tokens().eos, 2);
  EXPECT_EQ(bundle->special_tokens().unk, 3);
}

TEST_F(BundleTest, DefaultsAreTheManifestsAndTheCapFollowsTheSource) {
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  const SearchOptions options = bundle->default_options(7);
  EXPECT_EQ(options.beam_size, 4);
  EXPECT_FLOAT_EQ(options.length_penalty, 0.6f);
  EXPECT_EQ(options.min_target_tokens, 1);
  EXPECT_EQ(options.max_target_tokens, 20);  // 1.5 · 7 + 10, rounded down
  EXPECT_EQ(bundle->default_options(256).max_target_tokens, 200);
}

TEST_F(BundleTest, WithoutDefaultsTheCapIsTheModelsLimit) {
  manifest_.clear_default_options();
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_EQ(bundle->default_options(3).max_target_tokens, 200);
  EXPECT_EQ(bundle->default_options(3).beam_size, 5);
}

TEST_F(BundleTest, MinimumNeverExceedsTheCapOfAShortSource) {
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

TEST_F(BundleTest, ManifestThatIsNotJsonIsRefused) {
  for (const char* json : {"", "not json", "{\"schema_version\": 1", "[]", "{\"name\": 7e99}"}) {
    Write("manifest.json", json);
    EXPECT_THAT(ReadBundle(folder_),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("manifest.json")))
        << json;
  }
}

TEST_F(BundleTest, DamagedManifestIsQuotedInPrintableCharactersAndNotAtLength) {
  const std::string noise = "\xFF\x01\xC3";
  for (const std::string& json :
       {"{\"name\": \"" + noise + "\"}", "{\"name\" " + noise, noise + "{}",
        "{\"" + std::string(3000, 'x') + "\": 1}", "{\"" + noise + "\": 1}",
        "{\"task\": \"" + std::string(3000, '\t') + "\"}"}) {
    Write("manifest.json", json);
    const absl::Status status = ReadBundle(folder_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, Each(AllOf(Ge(' '), Le('~'))));
    EXPECT_THAT(message, SizeIs(Le(folder_.string().size() + 1000)));
  }
  Write("manifest.json", "{\"name\" \xFF}");
  EXPECT_THAT(std::string(ReadBundle(folder_).status().message()), HasSubstr("\\xff"));
}

TEST_F(BundleTest, UnknownFieldsAreRefusedByName) {
  Write("manifest.json", R"({"schema_version": 1, "beams": 5})");
  EXPECT_THAT(ReadBundle(folder_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                            AllOf(HasSubstr("manifest.json"), HasSubstr("beams"))));
}

TEST_F(BundleTest, OtherSchemaVersionsAreRefused) {
  ExpectRefusal([](BundleManifest& m) { m.set_schema_version(2); },
                {"manifest.json", "schema_version is 2", "reads 1"});
  ExpectRefusal([](BundleManifest& m) { m.clear_schema_version(); }, {"schema_version is 0"});
}

TEST_F(BundleTest, IdentityMustMakeSense) {
  for (const char* name : {"", "En-De", "a b", "../x", ".hidden", "a/b"}) {
    ExpectRefusal([name](BundleManifest& m) { m.set_name(name); },
                  {"name \"" + std::string(name) + "\""});
  }
  ExpectRefusal([](BundleManifest& m) { m.clear_version(); }, {"version is empty"});
  ExpectRefusal([](BundleManifest& m) { m.clear_task(); }, {"TASK_TRANSLATE"});
  for (const char* code : {"", "english", "e", "en de", "x-private", "12"}) {
    ExpectRefusal([code](BundleManifest& m) { m.set_target_language_code(code); },
                  {"target_language_code", code});
  }
  ExpectRefusal([](BundleManifest& m) { m.set_task(linnet::v1::TASK_SUMMARIZE); },
                {"one language", "en", "de"});
  for (const char* code : {"de", "pt-BR", "zh-Hant", "gsw", "EN-us"}) {
    manifest_.set_target_language_code(code);
    EXPECT_THAT(Read(), IsOk()) << code;
  }
}

TEST_F(BundleTest, ArchitectureMustAddUp) {
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->add_encoder_kernel_sizes(3); },
                {"encoder_mixers", "2", "3"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->set_heads(5); },
                {"heads 5", "64"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->set_weight_type("int3"); },
                {"int3", "bfloat16"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->set_parameters(0); },
                {"parameters 0"});
}

TEST_F(BundleTest, SpecialIdsLieInTheVocabularyAndDiffer) {
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_unk_id(400); },
                {"unk_id is 400", "399"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_pad_id(-1); },
                {"pad_id is -1"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_eos_id(0); }, {"eos_id is 0"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_size(0); },
                {"vocabulary.size is 0"});
}

TEST_F(BundleTest, LimitsAndDefaultsHaveRanges) {
  ExpectRefusal([](BundleManifest& m) { m.mutable_limits()->set_max_source_tokens(0); },
                {"max_source_tokens is 0"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_limits()->set_max_target_tokens(-5); },
                {"max_target_tokens is -5"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_default_options()->set_beam_size(99); },
                {"default_options.beam_size is 99", "32"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_default_options()->set_max_target_ratio(-1); },
                {"max_target_ratio is -1"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_default_options()->set_max_target_tokens(201); },
                {"max_target_tokens is 201", "200"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_default_options()->set_min_target_tokens(-1); },
                {"min_target_tokens is -1"});
}

TEST_F(BundleTest, FileNamesStayInsideTheFolder) {
  for (const char* name : {"../model.pt", "/etc/passwd", "a/b", "..", ".", "", "a\\b"}) {
    ExpectRefusal([name](BundleManifest& m) { m.add_files()->set_name(name); },
                  {"plain name", name});
  }
  ExpectRefusal([](BundleManifest& m) { *m.add_files() = m.files(0); }, {"model.pt", "twice"});
}

TEST_F(BundleTest, FilesThatAreUsedMustBeListed) {
  ExpectRefusal([](BundleManifest& m) { m.mutable_files()->erase(m.files().begin()); },
                {"model_file", "model.pt"});
  ExpectRefusal([](BundleManifest& m) { m.set_target_tokenizer_file("other.spm"); },
                {"target_tokenizer_file", "other.spm"});
  ExpectRefusal([](BundleManifest& m) { m.clear_model_file(); }, {"model_file is empty"});
  ExpectRefusal([](BundleManifest& m) { m.clear_source_tokenizer_file(); }, {"both or none"});
  ExpectRefusal(
      [](BundleManifest& m) {
        m.clear_source_tokenizer_file();
        m.clear_target_tokenizer_file();
      },
      {"golden_examples"});
}

TEST_F(BundleTest, DamagedFilesAreNamedWithWhatIsWrong) {
  Write("model.pt", "weightz");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "sha256", kWeightsSha});
  Write("model.pt", "weight");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "6 bytes", "7"});
  fs::remove(folder_ / "model.pt");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "missing"});
  fs::create_directory(folder_ / "model.pt");
  ExpectRefusal([](BundleManifest&) {}, {"model.pt", "not a regular file"});
}

TEST_F(BundleTest, FilesThatAreNotListedAreIgnored) {
  Write("MODEL_CARD.md", "anything");
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(BundleTest, BundlesAreFoundBelowTheRootInOrderOfName) {
  ASSERT_THAT(Read(), IsOk());
  const fs::path root = folder_.parent_path();
  fs::create_directories(root / "a-summary");
  fs::create_directories(root / "notes");
  std::ofstream(root / "a-summary" / "manifest.json") << "{}";
  std::ofstream(root / "README.md") << "text";
  EXPECT_THAT(FindBundles(root), IsOkAndHolds(ElementsAre(root / "a-summary", folder_)));
  EXPECT_THAT(FindBundles(folder_), IsOkAndHolds(ElementsAre(folder_)));
}

TEST_F(BundleTest, RootWithoutBundlesIsNotFound) {
  EXPECT_THAT(FindBundles(folder_.parent_path()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("manifest.json")));
  EXPECT_THAT(FindBundles(folder_ / "nowhere"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
  EXPECT_THAT(FindBundles(folder_ / "model.pt"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("model.pt")));
}

}  // namespace
}  // namespace linnet::model
