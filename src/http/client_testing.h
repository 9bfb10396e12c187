// A client for tests: sends bytes over a real socket, and reads until the server ends.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/unique_fd.h"

namespace assay {

class TestClient {
 public:
  explicit TestClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    connected_ =
        ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  bool connected() const { return connected_; }
  void Send(const std::string& bytes) const {
    ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Nothing further will be sent.
  void End() const { ::shutdown(socket_.get(), SHUT_WR); }
  // Until `mark` was read, the server ends, or the time is over.
  std::string Read(const std::string& mark, int timeout_ms = 5000) const {
    std::string text;
    char buffer[4096];
    pollfd readable{socket_.get(), POLLIN, 0};
    while (text.find(mark) == std::string::npos && ::poll(&readable, 1, timeout_ms) > 0) {
      const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (size <= 0) break;
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }
  std::string ReadAll() const { return Read("no server says this"); }

 private:
  UniqueFd socket_;
  bool connected_ = false;
};

}  // namespace assay
