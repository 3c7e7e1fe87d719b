// CheckOptions, declared in channel.h.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/library/channel.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

constexpr absl::Duration kMinBackoff = absl::Milliseconds(2);

// Splits HOST:PORT or [IPv6]:PORT; false if `address` has neither form.
bool SplitAddress(absl::string_view address, absl::string_view* host) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 || port > 65535 ||
      (address.find(':') != colon && address[0] != '[')) {
    return false;
  }
  *host = address.substr(0, colon);
  return true;
}

// True if gRPC takes the whole address for a name or an IPv6 and adds a port of its own.
bool HasNoPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  return colon == absl::string_view::npos || address.back() == ']' ||
         (address.find(':') != colon && address[0] != '[');
}

// Checks the ports, which gRPC would take modulo 65536 or refuse at the first call, as it does with
// the rest.
absl::Status CheckPorts(absl::string_view server) {
  for (const absl::string_view scheme : {"dns:", "ipv4:", "ipv6:"}) {
    absl::string_view addresses = server, host;
    if (!absl::ConsumePrefix(&addresses, scheme)) continue;
    addresses.remove_prefix(addresses.rfind('/') + 1);
    for (const absl::string_view address : absl::StrSplit(addresses, ',')) {
      const bool may_lack_port = scheme == "dns:" && !address.empty();
      if (SplitAddress(address, &host) || (may_lack_port && HasNoPort(address))) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("server \"", server, "\" is not ", scheme,
                       "… with ports of 1 to 65535, as in dns:///translate.example:50051 or "
                       "ipv4:192.0.2.1:50051,192.0.2.2:50051"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckServer(const std::string& server) {
  if (HasScheme(server)) {
    // gRPC splits the path of a socket at its commas as well.
    if (!absl::StrContains(server, ',') || absl::StartsWith(server, "ipv"))
      return CheckPorts(server);
    return absl::InvalidArgumentError(absl::StrCat(
        "server \"", server, "\" has a comma, but only lists IP:PORT,IP:PORT may have one"));
  }
  absl::string_view host;
  if (!absl::StrContains(server, ',')) {
    if (SplitAddress(server, &host)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "server \"", server,
        "\" is not HOST:PORT with a port of 1 to 65535, as in 127.0.0.1:50051 or [::1]:50051"));
  }
  int four = 0, six = 0;
  const std::vector<std::string> addresses = absl::StrSplit(server, ',');
  for (const std::string& address : addresses) {
    unsigned char ip[16];
    if (!SplitAddress(address, &host)) continue;
    if (inet_pton(AF_INET, std::string(host).c_str(), ip) == 1) ++four;
    if (host.front() == '[' && host.back() == ']' &&
        inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(), ip) == 1) {
      ++six;
    }
  }
  if (four == addresses.size() || six == addresses.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "servers \"", server,
      "\" are not all IPv4:PORT, nor all [IPv6]:PORT; names are resolved by dns:///HOST:PORT"));
}

// Checks that a file holds an object of PEM whose label ends with `label`. Otherwise calls would
// fail as if there were no server.
absl::Status CheckPem(const char* what, const std::string& file, absl::string_view label) {
  if (file.empty()) return absl::OkStatus();
  std::ifstream stream(file);
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the ", what, " \"", file, "\": ", why));
  };
  if (!stream || stream.peek() == EOF)
    return refuse(stream ? "it is empty" : static_cast<const char*>(std::strerror(errno)));
  const std::string end = absl::StrCat(label, "-----");
  for (std::string line; std::getline(stream, line);) {
    if (absl::StartsWith(line, "-----BEGIN ") && absl::StrContains(line, end))
      return absl::OkStatus();
  }
  return refuse(absl::StrCat("it holds no ", absl::AsciiStrToLower(label), " in PEM"));
}

absl::Status CheckTls(const TlsOptions& tls, const std::string& server) {
  if (tls.certificate_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a certificate needs its key and a key its certificate: one of them was not given");
  }
  if (UsesTls(tls) && tls.server_name.empty() && absl::StrContains(server, ',')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TLS to several addresses, \"", server,
        "\", needs the name that is in their certificates: give it as the server name of TLS"));
  }
  absl::Status status = CheckPem("certificates of authorities", tls.ca_file, "CERTIFICATE");
  status.Update(CheckPem("certificate", tls.certificate_file, "CERTIFICATE"));
  status.Update(CheckPem("certificate's key", tls.key_file, "PRIVATE KEY"));
  return status;
}

absl::Status CheckDuration(const char* name, absl::Duration value, bool may_be_zero) {
  if (value <= absl::Hours(24) &&
      (value > absl::ZeroDuration() || (may_be_zero && value == absl::ZeroDuration()))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", absl::FormatDuration(value), ", it must be ",
                   may_be_zero ? "from 0 to 24h" : "above 0 and at most 24h"));
}

}  // namespace

bool HasScheme(const std::string& server) {
  for (absl::string_view scheme : {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:"}) {
    if (absl::StartsWith(server, scheme)) return true;
  }
  return false;
}

absl::Status CheckOptions(const ClientOptions& options) {
  absl::Status status = CheckServer(options.server);
  status.Update(CheckTls(options.tls, options.server));
  status.Update(CheckTokenIsPrivate(options));
  status.Update(CheckDuration("timeout", options.timeout, false));
  status.Update(CheckDuration("wait", options.wait, true));
  status.Update(CheckDuration("keepalive", options.keepalive, false));
  RETURN_IF_ERROR(status);
  const RetryOptions& retry = options.retry;
  if (retry.max_attempts < 1 || retry.max_attempts > 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_attempts ", retry.max_attempts, " is not 1 to 5"));
  }
  if (retry.initial_backoff < kMinBackoff || retry.max_backoff < retry.initial_backoff) {
    return absl::InvalidArgumentError(absl::StrCat(
        "back-off from ", absl::FormatDuration(retry.initial_backoff), " to ",
        absl::FormatDuration(retry.max_backoff), " is not an increasing range from at least ",
        absl::FormatDuration(kMinBackoff)));
  }
  RETURN_IF_ERROR(CheckDuration("max_backoff", retry.max_backoff, false));
  if (options.max_reply_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_reply_bytes ", options.max_reply_bytes, " is not at least 1"));
  }
  return absl::OkStatus();
}

bool IsBalanced(const ClientOptions& options) {
  return absl::StartsWith(options.server, "dns:") || absl::StrContains(options.server, ',');
}

}  // namespace linnet::client
