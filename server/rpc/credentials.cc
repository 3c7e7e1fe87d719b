#include "server/rpc/credentials.h"

#include <grpcpp/security/tls_credentials_options.h>

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/log.h"
#include "server/rpc/tls_files.h"

namespace linnet::server {
namespace {

constexpr char kSubject[] = "linnet-subject";
constexpr unsigned kRefreshSeconds = 5;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace

bool OnlyThisMachine(absl::string_view address) {
  return absl::StartsWith(address, "127.") || absl::StartsWith(address, "[::1]:") ||
         absl::StartsWith(address, "localhost:");
}

absl::Status Authenticator::Read() {
  std::error_code error;
  const auto changed = std::filesystem::last_write_time(path_, error);
  {
    MutexLock lock(mu_);
    if (tokens_ != nullptr && (error || changed == changed_)) return absl::OkStatus();
    changed_ = changed;  // an unreadable one is complained of once
  }
  const absl::StatusOr<std::string> text = ReadFile(path_);
  if (!text.ok()) return text.status();
  absl::StatusOr<TokenTable> table = TokenTable::Parse(*text);
  if (!table.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", table.status().message()));
  }
  MutexLock lock(mu_);
  tokens_ = std::make_shared<const TokenTable>(*std::move(table));
  Log(LogLevel::kInfo, "tokens_read", {{"path", path_}, {"tokens", tokens_->size()}});
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Authenticator>> Authenticator::Open(const std::string& path) {
  std::shared_ptr<Authenticator> authenticator(new Authenticator(path));
  if (absl::Status status = authenticator->Read(); !status.ok()) return status;
  return authenticator;
}

void Authenticator::Refresh() {
  if (absl::Status status = Read(); !status.ok())
    Log(LogLevel::kError, "tokens_not_read", {{"why", status.message()}});
}

grpc::Status Authenticator::Process(const InputMetadata& headers, grpc::AuthContext* context,
                                    OutputMetadata* consumed, OutputMetadata* /*response*/) {
  auto header = [&](const char* name) -> absl::string_view {
    const auto found = headers.find(name);
    if (found == headers.end()) return "";
    return {found->second.data(), found->second.size()};
  };
  const absl::string_view path = header(":path");
  if (absl::StartsWith(path, "/grpc.health.v1.Health/")) return grpc::Status::OK;
  absl::string_view token = header("authorization");
  if (!absl::ConsumePrefix(&token, "Bearer ")) {
    return {grpc::StatusCode::UNAUTHENTICATED,
            "the call brings no token: send the header \"authorization: Bearer TOKEN\""};
  }
  // Nobody behind this needs to see it.
  consumed->insert({"authorization", std::string(header("authorization"))});
  std::shared_ptr<const TokenTable> tokens;
  {
    MutexLock lock(mu_);
    tokens = tokens_;
  }
  const Grant* grant = tokens->Find(token);
  if (grant == nullptr) return {grpc::StatusCode::UNAUTHENTICATED, "the token is not known"};
  const bool admin = absl::StartsWith(path, "/grpc.channelz.") ||
                     absl::StartsWith(path, "/linnet.v1.AdminService/");
  const bool public_facts = absl::StartsWith(path, "/grpc.reflection.");  // for any token
  if (!public_facts && (admin ? !grant->admin : !grant->inference)) {
    return {grpc::StatusCode::PERMISSION_DENIED,
            absl::StrCat("the token of \"", grant->name, "\" has not the right \"",
                         admin ? "admin" : "inference", "\"")};
  }
  context->AddProperty(kSubject, grant->name);
  context->SetPeerIdentityPropertyName(kSubject);
  return grpc::Status::OK;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator) {
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (!security.tls_certificate.empty()) {
    if (absl::Status status = CheckTlsFiles(security); !status.ok()) return status;
    const bool mutual = !security.tls_client_ca.empty();
    auto provider = mutual ? std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
                                 security.tls_key, security.tls_certificate, security.tls_client_ca,
                                 kRefreshSeconds)
                           : std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
                                 security.tls_key, security.tls_certificate, kRefreshSeconds);
    grpc::experimental::TlsServerCredentialsOptions options(provider);
    options.watch_identity_key_cert_pairs();
    if (mutual) {
      options.watch_root_certs();
      options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    }
    credentials = grpc::experimental::TlsServerCredentials(options);
  } else if (authenticator != nullptr) {
    if (!OnlyThisMachine(address)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokens would go over the network in plain text: give --tls-cert and "
                       "--tls-key, or listen on an address of this machine alone, not on ",
                       address));
    }
    // In plain text as well, but with the place for an authenticator.
    credentials = grpc::experimental::LocalServerCredentials(LOCAL_TCP);
  } else {
    return grpc::InsecureServerCredentials();
  }
  if (authenticator != nullptr) credentials->SetAuthMetadataProcessor(authenticator);
  return credentials;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeAdminCredentials(
    const SecurityOptions& security, const std::string& address,
    const std::shared_ptr<Authenticator>& authenticator) {
  if (address.empty()) return nullptr;
  if (authenticator == nullptr && !OnlyThisMachine(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("everybody could administer this server: give --tokens, or an --admin-listen "
                     "that this machine alone reaches, not ",
                     address));
  }
  return MakeCredentials(security, address, authenticator);
}

}  // namespace linnet::server
