// Keys and signatures are made with OpenSSL's command line, as users make them.
#include "model/runtime/bundle/signature.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/runtime/bundle_fixture.h"

namespace linnet::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SignatureTest : public BundleTest {
 protected:
  void SetUp() override {
    BundleTest::SetUp();
    for (const std::string name : {"one", "two"}) {
      Run(absl::StrCat("openssl genpkey -algorithm ed25519 -out ", Key(name)));
      Run(absl::StrCat("openssl pkey -pubout -in ", Key(name), " -out ", Key(name), ".pub"));
    }
    ASSERT_THAT(Read(), IsOk());  // writes the manifest
  }

  std::string Key(const std::string& name) { return (keys_.path() / name).string(); }
  static void Run(const std::string& command) {
    ASSERT_EQ(std::system((command + " 2> /dev/null").c_str()), 0) << command;
  }
  void Sign(const std::string& key) {
    const std::string manifest = (folder_ / "manifest.json").string();
    Run(absl::StrCat("openssl pkeyutl -sign -rawin -inkey ", Key(key), " -in ", manifest, " -out ",
                     manifest, ".sig"));
  }
  absl::StatusOr<Bundle> ReadSigned(const std::string& key) {
    const auto keys = BundleKeys::Read(Key(key) + ".pub");
    if (!keys.ok()) return keys.status();
    return ReadBundle(folder_, &*keys);
  }

  const test::TemporaryFolder keys_;
};

TEST_F(SignatureTest, ReadsSignedBundle) {
  Sign("one");
  EXPECT_THAT(ReadSigned("one"), IsOk());
  EXPECT_THAT(ReadBundle(folder_), IsOk()) << "and where no key is asked for";
}

TEST_F(SignatureTest, AcceptsSignatureByOneOfSeveralKeys) {
  Run(absl::StrCat("cat ", Key("one"), ".pub ", Key("two"), ".pub > ", Key("both"), ".pub"));
  for (const std::string signer : {"one", "two"}) {
    Sign(signer);
    EXPECT_THAT(ReadSigned("both"), IsOk()) << signer;
  }
}

TEST_F(SignatureTest, RefusesUnsignedBundle) {
  EXPECT_THAT(ReadSigned("one"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr(folder_.string()), HasSubstr("manifest.json.sig"))));
}

TEST_F(SignatureTest, RefusesSignatureByAnotherKey) {
  Sign("two");
  EXPECT_THAT(ReadSigned("one"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("of none of the 1 keys")));
}

TEST_F(SignatureTest, RefusesChangedManifestBeforeParsing) {
  Sign("one");
  Write("manifest.json", "{ no json");
  EXPECT_THAT(ReadSigned("one"), StatusIs(absl::StatusCode::kPermissionDenied));
  manifest_.set_version("another");
  ASSERT_THAT(Read(), IsOk());
  EXPECT_THAT(ReadSigned("one"), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(SignatureTest, RefusesChangedFile) {
  Sign("one");
  Write("model.pt", "weighty");
  EXPECT_THAT(ReadSigned("one"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("model.pt")));
}

TEST_F(SignatureTest, RefusesInvalidSignatures) {
  Sign("one");
  const std::string path = (folder_ / "manifest.json.sig").string();
  std::ifstream stream(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(stream)), {});
  ASSERT_EQ(good.size(), 64);
  std::string flipped = good;
  flipped[20] = static_cast<char>(flipped[20] ^ 1);
  for (const std::string& bad : {std::string(), flipped, good.substr(1), good + good,
                                 std::string(64, '\0'), std::string(1 << 20, 'x')}) {
    Write("manifest.json.sig", bad);
    EXPECT_THAT(ReadSigned("one"), StatusIs(absl::StatusCode::kPermissionDenied)) << bad.size();
  }
}

TEST_F(SignatureTest, RefusesInvalidKeys) {
  auto read = [&](const std::string& name) { return BundleKeys::Read(Key(name) + ".pub"); };
  EXPECT_THAT(read("nobody"), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("nobody")));
  std::ofstream(Key("empty") + ".pub");
  EXPECT_THAT(read("empty"), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("none")));
  Run(absl::StrCat("cp ", Key("one"), " ", Key("private"), ".pub"));
  EXPECT_THAT(read("private"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another kind")));
  Run(
      absl::StrCat("openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 | openssl pkey "
                   "-pubout -out ",
                   Key("curve"), ".pub"));
  EXPECT_THAT(read("curve"), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("kind")));
  Run(absl::StrCat("sed 's/^MCow/MC-w/' ", Key("one"), ".pub > ", Key("damaged"), ".pub"));
  EXPECT_THAT(read("damaged"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("damaged")));
}

TEST_F(SignatureTest, ChecksFilesAgain) {
  const absl::StatusOr<Bundle> bundle = Read();
  ASSERT_THAT(bundle, IsOk());
  EXPECT_THAT(CheckFiles(*bundle), IsOk());
  Write("model.pt", "WEIGHTS");
  EXPECT_THAT(CheckFiles(*bundle), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace linnet::model
