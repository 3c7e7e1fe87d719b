// Validation of manifests and its error messages.
#include "model/runtime/bundle/manifest.h"

#include "absl/strings/str_cat.h"
#include "tests/runtime/bundle_fixture.h"

namespace linnet::model {
namespace {

using linnet::v1::BundleManifest;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

using ManifestTest = BundleTest;

TEST_F(ManifestTest, RefusesManifestThatIsNotJson) {
  for (const char* json : {"", "not json", "{\"schema_version\": 1", "[]", "{\"name\": 7e99}"}) {
    Write("manifest.json", json);
    EXPECT_THAT(ReadBundle(folder_),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("manifest.json")))
        << json;
  }
}

TEST_F(ManifestTest, QuotesDamagedManifestPrintablyAndBriefly) {
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

TEST_F(ManifestTest, RefusesUnknownFieldsByName) {
  Write("manifest.json", R"({"schema_version": 1, "beams": 5})");
  EXPECT_THAT(ReadBundle(folder_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                            AllOf(HasSubstr("manifest.json"), HasSubstr("beams"))));
}

TEST_F(ManifestTest, RefusesOtherSchemaVersions) {
  ExpectRefusal([](BundleManifest& m) { m.set_schema_version(2); },
                {"manifest.json", "schema_version is 2", "reads 1"});
  ExpectRefusal([](BundleManifest& m) { m.clear_schema_version(); }, {"schema_version is 0"});
}

TEST_F(ManifestTest, ChecksIdentity) {
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

TEST_F(ManifestTest, ChecksArchitecture) {
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->add_encoder_kernel_sizes(3); },
                {"encoder_mixers", "2", "3"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->set_heads(5); },
                {"heads 5", "64"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->set_weight_type("int3"); },
                {"int3", "bfloat16"});
  for (const int size : {0, -1, 2147483647}) {
    ExpectRefusal(
        [size](BundleManifest& m) { m.mutable_architecture()->set_decoder_kernel_sizes(0, size); },
        {"decoder_kernel_sizes", absl::StrCat("with ", size)});
  }
  ExpectRefusal([](BundleManifest& m) { m.mutable_architecture()->set_parameters(0); },
                {"parameters 0"});
  ExpectRefusal(
      [](BundleManifest& m) { m.mutable_architecture()->set_parameters(int64_t{1} << 62); },
      {"parameters 4611686018427387904"});
}

TEST_F(ManifestTest, RequiresDistinctSpecialIdsInTheVocabulary) {
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_unk_id(400); },
                {"unk_id is 400", "399"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_pad_id(-1); },
                {"pad_id is -1"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_eos_id(1); },
                {"pad_id is 1, which is another"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_size(0); },
                {"vocabulary.size is 0"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_source_size(0); },
                {"vocabulary.source_size is 0"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_source_size(3); },
                {"unk_id is 3", "between 0 and 2"});
}

TEST_F(ManifestTest, AcceptsEosAsBos) {
  manifest_.mutable_vocabulary()->set_bos_id(2);
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_EQ(bundle->special_tokens().bos, 2);
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_unk_id(2); }, {"unk_id is 2"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_bos_id(1); }, {"bos_id is 1"});
}

TEST_F(ManifestTest, StartTokenDefaultsToEos) {
  EXPECT_EQ(Read()->special_tokens().start, 2);
  for (int id : {0, 1, 399}) {  // Marian starts from its padding token
    manifest_.mutable_vocabulary()->set_start_id(id);
    const absl::StatusOr<Bundle> bundle = Read();
    ASSERT_THAT(bundle, IsOk());
    EXPECT_EQ(bundle->special_tokens().start, id);
  }
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_start_id(400); },
                {"start_id is 400", "399", "eos_id"});
  ExpectRefusal([](BundleManifest& m) { m.mutable_vocabulary()->set_start_id(-1); },
                {"start_id is -1"});
}

TEST_F(ManifestTest, RequiresListedVocabularyFiles) {
  Write("pieces.txt", "a\nb\n");
  manifest_.set_source_vocabulary_file("pieces.txt");
  manifest_.set_target_vocabulary_file("pieces.txt");
  ExpectRefusal([](BundleManifest&) {}, {"source_vocabulary_file", "pieces.txt", "not list"});
  List("pieces.txt");
  EXPECT_THAT(Read(), IsOk());
  ExpectRefusal([](BundleManifest& m) { m.set_target_vocabulary_file("others.txt"); },
                {"target_vocabulary_file", "others.txt", "not list"});
  Write("pieces.txt", "a\nc\n");
  ExpectRefusal([](BundleManifest&) {}, {"pieces.txt", "sha256"});
}

TEST_F(ManifestTest, RequiresAShortlistWhereItIsTheDefault) {
  manifest_.set_shortlist_by_default(true);
  ExpectRefusal([](BundleManifest&) {},
                {"shortlist_by_default is true", "shortlist_file is empty"});
  Write("shortlist.bin", "any bytes: the engine reads them");
  manifest_.set_shortlist_file("shortlist.bin");
  List("shortlist.bin");
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(ManifestTest, RequiresVocabularyFilesForBpeCodes) {
  Write("pieces.txt", "a\nb\n");
  List("pieces.txt");
  manifest_.set_subword_kind(linnet::v1::SUBWORD_KIND_BPE_CODES);
  ExpectRefusal([](BundleManifest&) {}, {"source_vocabulary_file is empty", "one piece a line"});
  manifest_.set_source_vocabulary_file("pieces.txt");
  ExpectRefusal([](BundleManifest&) {}, {"target_vocabulary_file is empty"});
  manifest_.set_target_vocabulary_file("pieces.txt");
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(ManifestTest, ByteLevelBpeHasNoTextGrammar) {
  Write("pieces.txt", "a\nb\n");
  List("pieces.txt");
  manifest_.set_subword_kind(linnet::v1::SUBWORD_KIND_BYTE_LEVEL_BPE);
  ExpectRefusal([](BundleManifest&) {},
                {"source_vocabulary_file is empty", "SUBWORD_KIND_BYTE_LEVEL_BPE has no ids"});
  manifest_.set_source_vocabulary_file("pieces.txt");
  manifest_.set_target_vocabulary_file("pieces.txt");
  EXPECT_THAT(Read(), IsOk());
  ExpectRefusal([](BundleManifest& m) { m.set_text_grammar(true); },
                {"text_grammar", "parts of characters", "turn it off"});
}

TEST_F(ManifestTest, RefusesUnknownKinds) {
  ExpectRefusal(
      [](BundleManifest& m) { m.set_subword_kind(static_cast<linnet::v1::SubwordKind>(7)); },
      {"subword_kind is 7", "SUBWORD_KIND_BPE_CODES"});
  ExpectRefusal(
      [](BundleManifest& m) { m.set_word_tokenizer(static_cast<linnet::v1::WordTokenizer>(7)); },
      {"word_tokenizer is 7", "WORD_TOKENIZER_MOSES"});
  manifest_.set_word_tokenizer(linnet::v1::WORD_TOKENIZER_MOSES);
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(ManifestTest, TextFieldsRequireATokenizer) {
  Write("pieces.txt", "a\nb\n");
  List("pieces.txt");
  manifest_.clear_source_tokenizer_file();
  manifest_.clear_target_tokenizer_file();
  manifest_.clear_golden_examples();
  ASSERT_THAT(Read(), IsOk());
  ExpectRefusal([](BundleManifest& m) { m.set_source_vocabulary_file("pieces.txt"); },
                {"source_vocabulary_file", "no tokenizer"});
  ExpectRefusal([](BundleManifest& m) { m.set_target_vocabulary_file("pieces.txt"); },
                {"target_vocabulary_file", "no tokenizer"});
  ExpectRefusal([](BundleManifest& m) { m.set_word_tokenizer(linnet::v1::WORD_TOKENIZER_MOSES); },
                {"word_tokenizer", "no tokenizer"});
  ExpectRefusal([](BundleManifest& m) { m.set_capitals_mark("<ph0>"); },
                {"capitals_mark", "no tokenizer"});
  ExpectRefusal([](BundleManifest& m) { m.set_text_grammar(true); },
                {"text_grammar", "no tokenizer"});
  ExpectRefusal(
      [](BundleManifest& m) {
        m.set_subword_kind(linnet::v1::SUBWORD_KIND_BPE_CODES);
        m.set_source_vocabulary_file("pieces.txt");
        m.set_target_vocabulary_file("pieces.txt");
      },
      {"no tokenizer"});
}

TEST_F(ManifestTest, ChecksRangesOfLimitsAndDefaults) {
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

TEST_F(ManifestTest, RefusesFileNamesOutsideTheFolder) {
  for (const char* name : {"../model.pt", "/etc/passwd", "a/b", "..", ".", "", "a\\b"}) {
    ExpectRefusal([name](BundleManifest& m) { m.add_files()->set_name(name); },
                  {"plain name", name});
  }
  ExpectRefusal([](BundleManifest& m) { *m.add_files() = m.files(0); }, {"model.pt", "twice"});
}

TEST_F(ManifestTest, RequiresUsedFilesToBeListed) {
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

}  // namespace
}  // namespace linnet::model
