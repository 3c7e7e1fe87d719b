#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace linnet::test {

// A client's connection to a port of this machine. Reads time out, so that a connection that stays
// open fails a test.
class ClientSocket {
 public:
  explicit ClientSocket(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval timeout{.tv_sec = 30, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~ClientSocket() { close(socket_); }
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  bool connected() const { return connected_; }
  void Send(int64_t bytes) const {
    const std::string data(bytes, 'a');
    EXPECT_EQ(send(socket_, data.data(), data.size(), MSG_NOSIGNAL), bytes);
  }
  // True if it receives one byte and no more, false if it was closed before.
  bool ReceivesOneByte() const {
    char bytes[8];
    return recv(socket_, bytes, sizeof bytes, 0) == 1;
  }
  bool IsClosedByTheServer() const {
    char byte;
    const ssize_t read = recv(socket_, &byte, 1, 0);
    return read == 0 || (read < 0 && errno == ECONNRESET);
  }

 private:
  int socket_;
  bool connected_ = false;
};

}  // namespace linnet::test
