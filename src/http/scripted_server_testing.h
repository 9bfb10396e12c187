// A server on the loopback that gives each connection the next reply of a script, byte for byte.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace assay {

struct ScriptedPiece {
  std::string bytes;
  int pause_ms = 0;  // before it
};
using ScriptedReply = std::vector<ScriptedPiece>;  // the connection is closed after the last

inline ScriptedReply Document(int status, std::string_view body, std::string_view headers = "") {
  return {
      {fmt::format("HTTP/1.1 {} Said\r\ncontent-type: application/json\r\n{}content-length: "
                   "{}\r\nconnection: close\r\n\r\n{}",
                   status, headers, body.size(), body)}};
}

// A stream of events in pieces, without a length.
inline ScriptedReply Stream(const std::vector<std::string>& pieces, int pause_ms = 0) {
  ScriptedReply reply = {
      {"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
       "transfer-encoding: chunked\r\nconnection: close\r\n\r\n"}};
  for (const std::string& piece : pieces)
    reply.push_back({fmt::format("{:x}\r\n{}\r\n", piece.size(), piece), pause_ms});
  return reply;
}
// The end of a stream that did not break off.
inline ScriptedReply Ended(ScriptedReply stream) {
  stream.push_back({"0\r\n\r\n"});
  return stream;
}

class ScriptedServer {
 public:
  // After the last reply it is repeated.
  explicit ScriptedServer(std::vector<ScriptedReply> script) : script_(std::move(script)) {
    listening_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listening_.get(), 16);
    ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    ::shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  // The requests so far, with their headers.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void Serve() {
    while (!stopping_) {
      const UniqueFd connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) return;
      const std::string request = ReadRequest(connection.get());
      if (request.empty()) continue;
      size_t number;
      {
        const std::lock_guard lock(mutex_);
        number = std::min(requests_.size(), script_.size() - 1);
        requests_.push_back(request);
      }
      for (const ScriptedPiece& piece : script_[number]) {
        for (int waited_ms = 0; waited_ms < piece.pause_ms && !stopping_; waited_ms += 10)
          ::poll(nullptr, 0, 10);
        for (size_t at = 0; at < piece.bytes.size();) {
          const ssize_t sent = ::send(connection.get(), piece.bytes.data() + at,
                                      piece.bytes.size() - at, MSG_NOSIGNAL);
          if (sent <= 0) break;
          at += static_cast<size_t>(sent);
        }
      }
      ::shutdown(connection.get(), SHUT_WR);
    }
  }

  static std::string ReadRequest(int fd) {
    std::string text;
    char buffer[4096];
    while (true) {
      const size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t length = text.find("Content-Length: ");  // a GET has none
        const size_t body =
            length < head ? static_cast<size_t>(std::stoul(text.substr(length + 16))) : 0;
        if (text.size() >= head + 4 + body) return text;
      }
      const ssize_t size = ::recv(fd, buffer, sizeof buffer, 0);
      if (size <= 0) return "";
      text.append(buffer, static_cast<size_t>(size));
    }
  }

  const std::vector<ScriptedReply> script_;
  UniqueFd listening_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace assay
