#include "server/identity/authentication.h"

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/errors.h"
#include "tests/support/status_matchers.h"

namespace linnet::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kAlice[] = "alice-0123456789abcdef";
constexpr char kBob[] = "bob-0123456789abcdef";

// One call: its headers and where it comes from.
struct Call {
  std::multimap<std::string, std::string> metadata;
  std::string address = "ipv4:192.0.2.7:4711";
  std::string certificate_subject = {};

  std::vector<absl::string_view> operator()(absl::string_view name) const {
    std::vector<absl::string_view> values;
    const auto [first, last] = metadata.equal_range(std::string(name));
    for (auto it = first; it != last; ++it) values.push_back(it->second);
    return values;
  }
};

Call WithToken(absl::string_view token) {
  return {.metadata = {{"authorization", absl::StrCat("Bearer ", token)}}};
}

absl::StatusOr<Caller> Resolve(const Call& call, const TokenTable* tokens = nullptr,
                               Right right = Right::kInference) {
  Caller caller;
  absl::Status status = ResolveCaller(
      call, {.address = call.address, .certificate_subject = call.certificate_subject}, right,
      tokens, caller);
  if (!status.ok()) return status;
  return caller;
}

TokenTable Tokens(const std::string& text) { return *TokenTable::Parse(text); }

TokenTable AliceAndBob() {
  return Tokens(absl::StrCat(kAlice, " alice inference\n", kBob, " bob inference,admin\n"));
}

TEST(AuthenticationTest, CallerIsNameOfToken) {
  const TokenTable tokens = AliceAndBob();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Resolve(WithToken(kAlice), &tokens)->client, "subject:alice");
    EXPECT_EQ(Resolve(WithToken(kBob), &tokens)->client, "subject:bob");
  }
}

TEST(AuthenticationTest, WithTokensOnlyTokenNamesCaller) {
  const TokenTable tokens = AliceAndBob();
  Call call = {.metadata = {{"x-client-id", "alice"}}, .certificate_subject = "alice"};
  EXPECT_THAT(Resolve(call, &tokens), StatusIs(absl::StatusCode::kUnauthenticated));
  call.metadata.emplace("authorization", absl::StrCat("Bearer ", kBob));
  EXPECT_EQ(Resolve(call, &tokens)->client, "subject:bob");
  EXPECT_EQ(Resolve(call, &tokens)->id, "") << "nor does an id split what it gets";
}

TEST(AuthenticationTest, WithoutTokensUsesCertificateThenAddressAndId) {
  Call call = {.metadata = {{"x-client-id", "indexer"}}, .certificate_subject = "search"};
  EXPECT_EQ(Resolve(call)->name(), "subject:search");
  call.certificate_subject.clear();
  EXPECT_EQ(Resolve(call)->client, "ipv4:192.0.2.7");
  EXPECT_EQ(Resolve(call)->id, "indexer");
  EXPECT_EQ(Resolve(call)->name(), "ipv4:192.0.2.7/indexer");
  call.metadata.clear();
  EXPECT_EQ(Resolve(call)->name(), "ipv4:192.0.2.7");
  call.address = "ipv6:%5B2001:db8::1%5D:4711";
  EXPECT_EQ(Resolve(call)->client, "ipv6:2001:db8::/64") << "one client has all of its network";
  EXPECT_EQ(Resolve(call)->name(), "ipv6:%5B2001:db8::1%5D") << "the log has the whole address";
}

TEST(AuthenticationTest, NeighboursInANetworkShareNoCachedAnswers) {
  const Caller one = *Resolve({.metadata = {}, .address = "ipv6:%5B2001:db8::1%5D:1"});
  const Caller other = *Resolve({.metadata = {}, .address = "ipv6:%5B2001:db8::2%5D:1"});
  EXPECT_EQ(one.client, other.client);
  EXPECT_NE(one.identity(), other.identity());
  const TokenTable tokens = AliceAndBob();
  EXPECT_EQ(Resolve(WithToken(kAlice), &tokens)->identity(), "subject:alice");
}

TEST(AuthenticationTest, RefusesUnknownTokenWithoutQuotingIt) {
  const TokenTable tokens = AliceAndBob();
  const std::string almost(kAlice, sizeof(kAlice) - 2);
  for (const std::string& value :
       {std::string(), almost, absl::StrCat("Bearer ", almost), absl::StrCat("bearer", kAlice),
        absl::StrCat("Bearer  ", kAlice), absl::StrCat("Basic ", kAlice)}) {
    const Call call = {.metadata = {{"authorization", value}}};
    EXPECT_THAT(Resolve(call, &tokens),
                StatusIs(absl::StatusCode::kUnauthenticated, Not(HasSubstr("0123"))))
        << value;
  }
}

TEST(AuthenticationTest, SchemeHasAnyCase) {
  const TokenTable tokens = AliceAndBob();
  for (const char* scheme : {"Bearer ", "bearer ", "BEARER "}) {
    const Call call = {.metadata = {{"authorization", absl::StrCat(scheme, kAlice)}}};
    EXPECT_THAT(Resolve(call, &tokens), IsOk()) << scheme;
  }
}

TEST(AuthenticationTest, RefusesTwoTokens) {
  const TokenTable tokens = AliceAndBob();
  Call call = WithToken(kAlice);
  call.metadata.emplace("authorization", absl::StrCat("Bearer ", kBob));
  EXPECT_THAT(Resolve(call, &tokens),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("2 headers")));
}

TEST(AuthenticationTest, EachMethodRequiresItsRight) {
  EXPECT_EQ(RequiredRight("/grpc.health.v1.Health/Check"), Right::kNone);
  EXPECT_EQ(RequiredRight("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
            Right::kAnyToken);
  EXPECT_EQ(RequiredRight("/linnet.v1.AdminService/Reload"), Right::kAdmin);
  EXPECT_EQ(RequiredRight("/linnet.v1.TextService/Translate"), Right::kInference);
  EXPECT_EQ(RequiredRight(""), Right::kInference) << "what is not known is not public";
  const TokenTable tokens = Tokens(absl::StrCat(kAlice, " alice inference\n", kBob, " bob admin"));
  EXPECT_THAT(Authenticate(WithToken(kAlice), Right::kInference, tokens), IsOk());
  EXPECT_THAT(Authenticate(WithToken(kBob), Right::kAdmin, tokens), IsOk());
  EXPECT_THAT(Authenticate(WithToken(kBob), Right::kAnyToken, tokens), IsOk());
  EXPECT_THAT(Authenticate(WithToken(kAlice), Right::kAdmin, tokens),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("\"alice\""), HasSubstr("\"admin\""))));
  EXPECT_THAT(Authenticate(WithToken(kBob), Right::kInference, tokens),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("\"inference\"")));
}

TEST(AuthenticationTest, TokenRemovedAfterFirstCheckIsRefused) {
  const TokenTable before = AliceAndBob();
  const TokenTable after = Tokens(absl::StrCat(kBob, " bob inference"));
  const Call call = WithToken(kAlice);
  ASSERT_THAT(Authenticate(call, Right::kInference, before), IsOk());
  EXPECT_THAT(Resolve(call, &after), StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(AuthenticationTest, ReadsOrRefusesPriorityAndRequestId) {
  const auto caller = Resolve({.metadata = {{"x-priority", "batch"}, {"x-request-id", "a/1"}}});
  ASSERT_THAT(caller, IsOk());
  EXPECT_EQ(caller->priority, Priority::kBatch);
  EXPECT_EQ(caller->request_id, "a/1");
  EXPECT_EQ(Resolve({})->priority, Priority::kNormal);
  EXPECT_EQ(Resolve({.metadata = {{"x-request-id", std::string(128, 'x')}}})->request_id.size(),
            128);
  EXPECT_THAT(Resolve({.metadata = {{"x-priority", "urgent"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("x-priority: \"urgent\""), HasSubstr("interactive"))));
  EXPECT_THAT(Resolve({.metadata = {{"x-request-id", std::string(500, 'x')}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("x-request-id: has 500"), HasSubstr("at most 128"))));
  EXPECT_THAT(Resolve({.metadata = {{"x-request-id", "two words"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"two words\"")));
  EXPECT_THAT(Resolve({.metadata = {{"x-client-id", std::string(65, 'x')}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 64")));
  for (const char* name : {"x-priority", "x-request-id", "x-client-id"}) {
    EXPECT_THAT(Resolve({.metadata = {{name, "batch"}, {name, "batch"}}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 times")))
        << name;
  }
}

TEST(AuthenticationTest, RefusesPriorityAboveMaxOfToken) {
  const TokenTable tokens =
      Tokens(absl::StrCat(kAlice, " alice inference max-priority=batch\n", kBob, " bob inference"));
  EXPECT_EQ(Resolve(WithToken(kAlice), &tokens)->priority, Priority::kBatch) << "normal is above";
  EXPECT_EQ(Resolve(WithToken(kBob), &tokens)->priority, Priority::kNormal);
  for (Priority asked : {Priority::kBatch, Priority::kNormal, Priority::kInteractive}) {
    Call alice = WithToken(kAlice), bob = WithToken(kBob);
    for (Call* call : {&alice, &bob}) call->metadata.emplace("x-priority", PriorityName(asked));
    EXPECT_EQ(Resolve(bob, &tokens)->priority, asked);
    if (asked == Priority::kBatch) {
      EXPECT_EQ(Resolve(alice, &tokens)->priority, asked);
    } else {
      auto caller = Resolve(alice, &tokens);
      ASSERT_THAT(caller, IsOk()) << "a field of the request may ask for less";
      EXPECT_EQ(caller->priority, Priority::kBatch);
      EXPECT_THAT(ApplyPriority("priority", std::nullopt, *caller),
                  StatusIs(absl::StatusCode::kPermissionDenied,
                           AllOf(HasSubstr("x-priority"), HasSubstr(PriorityName(asked)),
                                 HasSubstr("above batch"))));
      EXPECT_THAT(ApplyPriority("priority", asked, *caller),
                  StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("priority: ")));
      EXPECT_THAT(ApplyPriority("priority", Priority::kBatch, *caller), IsOk());
    }
  }
}

TEST(AuthenticationTest, CallWithBadHeaderIsLoggedWithCaller) {
  const TokenTable tokens = AliceAndBob();
  Call call = WithToken(kAlice);
  call.metadata.emplace("x-priority", "urgent");
  Caller caller;
  EXPECT_FALSE(
      ResolveCaller(call, {.address = call.address}, Right::kInference, &tokens, caller).ok());
  EXPECT_EQ(caller.client, "subject:alice");
}

// A connection's calls arrive on any thread, at once.
TEST(AuthenticationTest, ConcurrentCallsResolveToTheirOwnTokens) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 100'000;
  std::string text;
  std::vector<Call> calls;
  for (int i = 0; i < kThreads; ++i) {
    const std::string token = absl::StrCat("0123456789abcdef-", i);
    absl::StrAppend(&text, token, " name-", i, " inference\n");
    calls.push_back(WithToken(token));
  }
  const TokenTable tokens = Tokens(text);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        const int who = (t + i) % kThreads;
        const auto caller = Resolve(calls[who], &tokens);
        if (!caller.ok() || caller->client != absl::StrCat("subject:name-", who)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace linnet::server
