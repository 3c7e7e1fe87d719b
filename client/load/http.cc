#include "client/load/http.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/run/abandonment.h"

namespace linnet::client {
namespace {

absl::Status Failed(const std::string& url, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot read ", url, ": ", why));
}

}  // namespace

absl::StatusOr<std::string> HttpGet(const std::string& url, absl::Duration timeout) {
  absl::string_view rest = url;
  if (!absl::ConsumePrefix(&rest, "http://")) {
    return absl::InvalidArgumentError(absl::StrCat("\"", url,
                                                   "\" is not http://HOST:PORT/PATH, as in "
                                                   "http://127.0.0.1:9464/metrics"));
  }
  const size_t slash = rest.find('/');
  std::string host(rest.substr(0, slash));
  const std::string path(slash == absl::string_view::npos ? "/metrics" : rest.substr(slash));
  const std::string address = absl::StrContains(host, ':') ? host : host + ":80";
  const absl::Time end = absl::Now() + timeout;
  const absl::StatusOr<std::shared_ptr<Socket>> connection = Socket::Connect(address, timeout);
  if (!connection.ok()) return Failed(url, connection.status().message());
  const absl::StatusOr<int> duplicate = (*connection)->Duplicate();
  if (!duplicate.ok()) return Failed(url, duplicate.status().message());
  const int socket = *duplicate;
  const std::unique_ptr<const int, void (*)(const int*)> closer(&socket,
                                                                [](const int* fd) { close(*fd); });
  const timeval limit = absl::ToTimeval(timeout);
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: ", host, "\r\nAccept: text/plain\r\n\r\n");
  if (send(socket, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return Failed(url, std::strerror(errno));
  }
  constexpr size_t kMaxBytes = 64 << 20;
  std::string answer;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t bytes = recv(socket, buffer.data(), buffer.size(), 0);
    if (bytes < 0) return Failed(url, std::strerror(errno));
    if (bytes == 0) break;
    answer.append(buffer.data(), static_cast<size_t>(bytes));
    if (answer.size() > kMaxBytes) return Failed(url, "more than 64 MB");
    if (absl::Now() > end) return Failed(url, std::strerror(ETIMEDOUT));
  }
  const size_t body = answer.find("\r\n\r\n");
  const std::string status = answer.substr(0, answer.find("\r\n"));
  if (body == std::string::npos || !absl::StartsWith(status, "HTTP/1.")) {
    return Failed(url, "the answer is not HTTP");
  }
  if (!absl::StrContains(status, " 200")) return Failed(url, status);
  return answer.substr(body + 4);
}

}  // namespace linnet::client
