// Bytes that a peer sends to a server that listens: those requests that are answered keep to the
// server's bounds, each has one reply, and the server goes on with others.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/check.h"
#include "http/client_testing.h"
#include "http/server.h"

namespace assay {
namespace {

constexpr ServerLimits kLimits{.header_bytes_max = 4096,
                               .body_bytes_max = 4096,
                               .handlers = 1,
                               .idle_ms = 2000,
                               .header_ms = 1000};
constexpr const char* kAnswer = "an answer";

void CheckRequest(const ServedRequest& request) {
  ASSAY_CHECK(!request.method.empty() && !request.target.empty());
  for (const char c : request.method + request.target)
    ASSAY_CHECK(static_cast<unsigned char>(c) > ' ');
  size_t bytes = 0;
  for (const auto& [name, value] : request.headers) {
    ASSAY_CHECK(!name.empty());
    for (const char c : name) ASSAY_CHECK(c > ' ' && c != ':' && !(c >= 'A' && c <= 'Z'));
    ASSAY_CHECK(value.find_first_of(std::string("\r\n\0", 3)) == std::string::npos);
    bytes += name.size() + value.size();
  }
  // The library counts the first line apart.
  ASSAY_CHECK(bytes <= 2 * kLimits.header_bytes_max);
  ASSAY_CHECK(request.body.size() <= kLimits.body_bytes_max);
  // A body has one frame.
  ASSAY_CHECK(request.Header("content-length").empty() ||
              request.Header("transfer-encoding").empty());
}

class Served {
 public:
  Served() : server_(HttpServer::Listen(0, kLimits).value()) {
    handlers_.fault = [](int status, const std::string&) {
      return ServedReply{status, "a fault", "text/plain"};
    };
    handlers_.answer = [this](const ServedRequest& request) {
      CheckRequest(request);
      ++answers;
      return ServedReply{200, kAnswer, "text/plain"};
    };
    handlers_.over = [this] { return over_.load(); };
    thread_ = std::thread([this] { server_->Serve(handlers_); });
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    over_ = true;
    thread_.join();
  }
  std::string Tell(const std::string& bytes) const {
    const TestClient client(server_->port());
    client.Send(bytes);
    client.End();
    return client.ReadAll();
  }

  std::atomic<size_t> answers = 0;

 private:
  std::unique_ptr<HttpServer> server_;
  ServerHandlers handlers_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

}  // namespace
}  // namespace assay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  static Served served;
  const size_t before = served.answers;
  const std::string reply = served.Tell({reinterpret_cast<const char*>(data), size});
  ASSAY_CHECK(reply.empty() || reply.starts_with("HTTP/1.1 "));
  // A peer that is refused may miss replies that were on their way; none comes twice.
  ASSAY_CHECK(Count(reply, "HTTP/1.1 200 ") <= served.answers - before);
  ASSAY_CHECK(Count(reply, "HTTP/1.1 4") + Count(reply, "HTTP/1.1 5") <= 1);
  static uint64_t told = 0;
  if (++told % 64 == 0)
    ASSAY_CHECK(served.Tell("GET / HTTP/1.1\r\nHost: here\r\n\r\n").ends_with(kAnswer));
  return 0;
}
