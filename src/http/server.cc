// Theory of operation. One thread runs the connections, as coroutines; a pool of threads runs the
// handlers, so that a slow one holds up neither refusals nor other connections. A request's header
// is read and judged before its body, so that a peer without a token can send little. Streams and
// waits are coroutines that sleep on a timer, which Wake() ends: they hold no thread of the pool.
#include "http/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <list>
#include <map>

#include "http/gzip.h"

namespace assay {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = net::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
constexpr milliseconds kWaitForRoom{10};
constexpr milliseconds kDrain{2000};
constexpr size_t kFirstBytes = 4096, kDrainBytes = size_t{64} << 10;

auto Into(beast::error_code* error) { return net::redirect_error(net::use_awaitable, *error); }

ServedRequest RequestOf(const http::request<http::string_body>& message) {
  ServedRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& letter : name)
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    request.headers.emplace(std::move(name), std::string(field.value()));
  }
  return request;
}

http::response<http::string_body> MessageOf(ServedReply reply, bool head, bool keep_alive) {
  http::response<http::string_body> message(static_cast<http::status>(reply.status), 11);
  message.set(http::field::content_type, reply.content_type);
  message.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : reply.headers) message.set(name, value);
  message.keep_alive(keep_alive);
  message.body() = std::move(reply.body);
  message.prepare_payload();
  if (head) message.body().clear();  // its length stays
  return message;
}

// Compresses the body for a peer that asks for it. Streams are sent as they come.
ServedReply Packed(const ServedRequest& request, ServedReply reply) {
  if (reply.stream || reply.wait || !IsWorthGzip(reply.content_type, reply.body.size()))
    return reply;
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  if (!AcceptsGzip(request.Header("accept-encoding"))) return reply;
  if (auto packed = Gzipped(reply.body)) {
    reply.body = std::move(*packed);
    reply.headers.emplace_back("Content-Encoding", "gzip");
  }
  return reply;
}

// The status for a request that could not be read; 0: the peer is gone or silent.
int StatusOf(const beast::error_code& error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit) return 431;
  const bool is_parse_error =
      error.category() == make_error_code(http::error::bad_method).category();
  return is_parse_error && error != http::error::end_of_stream &&
                 error != http::error::partial_message
             ? 400
             : 0;
}

// Why a proxy before this server may read the header in another way, and see another request begin
// than this server does; empty: there is one way.
std::string AmbiguityOf(const http::request<http::string_body>& message) {
  if (message.count(http::field::host) > 1) return "there is more than one Host";
  if (message.count(http::field::content_length) > 1)
    return "there is more than one Content-Length";
  if (message.count(http::field::transfer_encoding) == 0) return {};
  if (message.count(http::field::content_length) > 0)
    return "there are both Content-Length and Transfer-Encoding";
  if (message.count(http::field::transfer_encoding) > 1 ||
      !beast::iequals(message[http::field::transfer_encoding], "chunked"))
    return "Transfer-Encoding is none that is known";
  return {};
}

std::string WordsOf(int status, const beast::error_code& error, const ServerLimits& limits) {
  if (status == 413) return fmt::format("the body is over {} KiB", limits.body_bytes_max >> 10);
  if (status == 431)
    return fmt::format("the request's header is over {} KiB", limits.header_bytes_max >> 10);
  return fmt::format("this is no request: {}", error.message());
}

std::string PeerOf(beast::tcp_stream& stream) {
  beast::error_code error;
  const auto endpoint = stream.socket().remote_endpoint(error);
  return error ? std::string() : endpoint.address().to_string();
}

// Looks whether the peer has closed its end, and takes nothing from what it sent.
bool IsGone(beast::tcp_stream& stream) {
  char byte;
  const ssize_t size = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// Counts a request while it lives.
class InHand {
 public:
  explicit InHand(size_t& count) : count_(count) { ++count_; }
  InHand(const InHand&) = delete;
  InHand& operator=(const InHand&) = delete;
  ~InHand() { --count_; }

 private:
  size_t& count_;
};

}  // namespace

struct HttpServer::Parts {
  explicit Parts(ServerLimits given) : limits(given), pool(given.handlers) {}

  // A coroutine that sleeps until its topic is woken.
  struct Sleeper {
    Sleeper(Parts& parts, const std::string& topic)
        : sleepers(parts.sleepers), timer(parts.context), place(sleepers.emplace(topic, this)) {}
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper() { sleepers.erase(place); }

    std::multimap<std::string, Sleeper*>& sleepers;
    net::steady_timer timer;
    std::multimap<std::string, Sleeper*>::iterator place;
    bool woken = false;
  };
  // A connection that waits for a request's header, oldest first.
  struct Silent {
    beast::tcp_stream* stream;
    std::chrono::steady_clock::time_point since;
  };

  net::awaitable<void> Accept(const ServerHandlers& handlers);
  net::awaitable<void> Watch(const ServerHandlers& handlers);
  net::awaitable<void> Connection(Tcp::socket socket, const ServerHandlers& handlers);
  // One request and its reply. False: the connection ends.
  net::awaitable<bool> Exchange(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                const ServerHandlers& handlers);
  using Parser = http::request_parser<http::string_body>;
  net::awaitable<beast::error_code> ReadHeader(beast::tcp_stream& stream,
                                               beast::flat_buffer& buffer, Parser& parser);
  net::awaitable<beast::error_code> ReadBody(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                             Parser& parser);
  net::awaitable<bool> Send(beast::tcp_stream& stream, ServedReply reply, bool head,
                            bool keep_alive);
  // Takes what the peer still sends, for a while, after the last reply: a connection that is closed
  // with something unread is reset, and the reply is lost.
  net::awaitable<void> Drain(beast::tcp_stream& stream);
  net::awaitable<void> SendStream(beast::tcp_stream& stream, ServedReply reply);
  // The reply that is waited for; nullopt: the peer has gone.
  net::awaitable<std::optional<ServedReply>> Await(beast::tcp_stream& stream, ServedReply reply);
  net::awaitable<void> Sleep(Sleeper& sleeper, milliseconds time);
  void WakeAll();
  // Runs `work` on the pool; this coroutine goes on in its own thread afterwards.
  template <typename T>
  net::awaitable<T> OnPool(std::function<T()> work) {
    auto run = [](const std::function<T()>& each) -> net::awaitable<T> { co_return each(); };
    co_return co_await net::co_spawn(pool, run(work), net::use_awaitable);
  }

  const ServerLimits limits;
  std::multimap<std::string, Sleeper*> sleepers;
  std::list<Silent> silent;
  net::io_context context{1};
  net::thread_pool pool;
  Tcp::acceptor acceptor{context};
  size_t connections = 0, in_hand = 0;
  bool over = false;
};

net::awaitable<bool> HttpServer::Parts::Send(beast::tcp_stream& stream, ServedReply reply,
                                             bool head, bool keep_alive) {
  const auto message = MessageOf(std::move(reply), head, keep_alive);
  stream.expires_after(milliseconds(limits.idle_ms));
  http::response_serializer<http::string_body> serializer(message);
  beast::error_code error;
  if (head)
    co_await http::async_write_header(stream, serializer, Into(&error));
  else
    co_await http::async_write(stream, serializer, Into(&error));
  co_return !error && keep_alive;
}

net::awaitable<void> HttpServer::Parts::Drain(beast::tcp_stream& stream) {
  beast::error_code error;
  stream.socket().shutdown(Tcp::socket::shutdown_send, error);
  std::vector<char> taken(kDrainBytes);
  stream.expires_after(kDrain);
  while (!error) co_await stream.async_read_some(net::buffer(taken), Into(&error));
}

net::awaitable<void> HttpServer::Parts::Sleep(Sleeper& sleeper, milliseconds time) {
  if (!sleeper.woken && !over) {
    beast::error_code error;
    sleeper.timer.expires_after(time);
    co_await sleeper.timer.async_wait(Into(&error));
  }
  sleeper.woken = false;
}

void HttpServer::Parts::WakeAll() {
  for (const auto& [topic, sleeper] : sleepers) {
    sleeper->woken = true;
    sleeper->timer.cancel();
  }
}

net::awaitable<void> HttpServer::Parts::SendStream(beast::tcp_stream& stream, ServedReply reply) {
  http::response<http::empty_body> header(static_cast<http::status>(reply.status), 11);
  header.set(http::field::content_type, reply.content_type);
  header.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : reply.headers) header.set(name, value);
  header.keep_alive(false);
  header.chunked(true);
  http::response_serializer<http::empty_body> serializer(header);
  beast::error_code error;
  stream.expires_after(milliseconds(limits.idle_ms));
  co_await http::async_write_header(stream, serializer, Into(&error));
  Sleeper sleeper(*this, reply.stream->topic);
  while (!error && !over && !IsGone(stream)) {
    const std::function<std::optional<std::string>()> next = reply.stream->next;
    const std::optional<std::string> part = co_await OnPool(next);
    if (!part) break;
    stream.expires_after(milliseconds(limits.idle_ms));
    if (!part->empty())
      co_await net::async_write(stream, http::make_chunk(net::buffer(*part)), Into(&error));
    stream.expires_never();
    if (reply.stream->ended()) break;
    if (!error) co_await Sleep(sleeper, milliseconds(reply.stream->look_ms));
  }
  if (error) co_return;
  stream.expires_after(milliseconds(limits.idle_ms));
  co_await net::async_write(stream, http::make_chunk_last(), Into(&error));
}

net::awaitable<std::optional<ServedReply>> HttpServer::Parts::Await(beast::tcp_stream& stream,
                                                                    ServedReply reply) {
  while (reply.wait) {
    const std::shared_ptr<const ServedWait> wait = reply.wait;
    const auto end = std::chrono::steady_clock::now() + milliseconds(wait->wait_ms);
    Sleeper sleeper(*this, wait->topic);
    std::optional<ServedReply> answer;
    while (true) {
      if (IsGone(stream)) co_return std::nullopt;
      const bool last = over || std::chrono::steady_clock::now() >= end;
      const std::function<std::optional<ServedReply>()> ask = [wait, last] {
        return wait->ask(last);
      };
      answer = co_await OnPool(ask);
      if (answer || last) break;
      co_await Sleep(sleeper,
                     std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()));
    }
    if (!answer) co_return std::nullopt;
    reply = std::move(*answer);
  }
  co_return reply;
}

net::awaitable<beast::error_code> HttpServer::Parts::ReadHeader(beast::tcp_stream& stream,
                                                                beast::flat_buffer& buffer,
                                                                Parser& parser) {
  silent.push_back({&stream, std::chrono::steady_clock::now()});
  const auto place = std::prev(silent.end());
  beast::error_code error;
  stream.expires_after(milliseconds(limits.idle_ms));
  if (buffer.size() == 0) {
    const size_t size = co_await stream.async_read_some(buffer.prepare(kFirstBytes), Into(&error));
    buffer.commit(size);
  }
  if (!error) {
    stream.expires_after(milliseconds(limits.header_ms));
    const size_t size = co_await http::async_read_header(stream, buffer, parser, Into(&error));
    // The parser bounds the request line and the fields, each by itself.
    if (!error && size > limits.header_bytes_max) error = http::error::header_limit;
  }
  silent.erase(place);
  co_return error;
}

net::awaitable<beast::error_code> HttpServer::Parts::ReadBody(beast::tcp_stream& stream,
                                                              beast::flat_buffer& buffer,
                                                              Parser& parser) {
  beast::error_code error;
  const auto begin = std::chrono::steady_clock::now();
  while (!error && !parser.is_done()) {
    // Each part gives time for the next, but a body that trickles ends.
    const milliseconds earned(1000 * parser.get().body().size() / limits.body_bytes_s_min);
    const milliseconds idle(limits.idle_ms);
    stream.expires_at(std::min(std::chrono::steady_clock::now() + idle, begin + idle + earned));
    co_await http::async_read_some(stream, buffer, parser, Into(&error));
  }
  co_return error;
}

net::awaitable<bool> HttpServer::Parts::Exchange(beast::tcp_stream& stream,
                                                 beast::flat_buffer& buffer,
                                                 const ServerHandlers& handlers) {
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
  parser.body_limit(limits.body_bytes_max);
  beast::error_code error = co_await ReadHeader(stream, buffer, parser);
  std::optional<ServedReply> refusal;
  ServedRequest request;
  const InHand counted(in_hand);
  if (!error) {
    request = RequestOf(parser.get());
    request.peer = PeerOf(stream);
    if (const std::string ambiguity = AmbiguityOf(parser.get()); !ambiguity.empty()) {
      co_await Send(stream, handlers.fault(400, ambiguity), request.method == "HEAD", false);
      co_await Drain(stream);
      co_return false;
    }
    refusal = handlers.refuse(request);
    if (!refusal && beast::iequals(request.Header("expect"), "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, 11);
      http::response_serializer<http::empty_body> serializer(go_on);
      co_await http::async_write(stream, serializer, Into(&error));
    }
  }
  if (!error && !refusal) error = co_await ReadBody(stream, buffer, parser);
  const bool head = request.method == "HEAD";
  if (refusal) {
    // The body, if there is one, is left unread: the connection ends.
    const bool whole = parser.is_done();
    const bool goes_on =
        co_await Send(stream, std::move(*refusal), head, whole && parser.keep_alive());
    if (!goes_on) co_await Drain(stream);
    co_return goes_on;
  }
  if (error) {
    const int status = StatusOf(error);
    if (status == 0) co_return false;
    co_await Send(stream, handlers.fault(status, WordsOf(status, error, limits)), head, false);
    co_await Drain(stream);
    co_return false;
  }
  request.body = std::move(parser.get().body());
  stream.expires_never();
  const std::function<ServedReply()> work = [&] {
    return Packed(request, handlers.answer(request));
  };
  ServedReply first = co_await OnPool(work);
  std::optional<ServedReply> reply = co_await Await(stream, std::move(first));
  if (!reply) co_return false;
  if (reply->stream && !head) {
    --in_hand;  // the end waits for no stream
    co_await SendStream(stream, std::move(*reply));
    ++in_hand;
    co_return false;
  }
  co_return co_await Send(stream, std::move(*reply), head, parser.keep_alive() && !over);
}

net::awaitable<void> HttpServer::Parts::Connection(Tcp::socket socket,
                                                   const ServerHandlers& handlers) {
  beast::tcp_stream stream(std::move(socket));
  beast::flat_buffer buffer;
  while (co_await Exchange(stream, buffer, handlers)) {
  }
  beast::error_code ignored;
  stream.socket().shutdown(Tcp::socket::shutdown_send, ignored);
  --connections;
}

net::awaitable<void> HttpServer::Parts::Accept(const ServerHandlers& handlers) {
  net::steady_timer timer(context);
  while (!over) {
    beast::error_code error;
    if (connections >= limits.connections_max) {
      const auto before = std::chrono::steady_clock::now() - milliseconds(limits.silent_ms);
      if (!silent.empty() && silent.front().since <= before) silent.front().stream->cancel();
      timer.expires_after(kWaitForRoom);
      co_await timer.async_wait(Into(&error));
      continue;
    }
    Tcp::socket socket = co_await acceptor.async_accept(Into(&error));
    if (error == net::error::operation_aborted) co_return;
    if (error) {  // no descriptor is left, say
      timer.expires_after(kWaitForRoom);
      co_await timer.async_wait(Into(&error));
      continue;
    }
    ++connections;
    net::co_spawn(context, Connection(std::move(socket), handlers), net::detached);
  }
}

net::awaitable<void> HttpServer::Parts::Watch(const ServerHandlers& handlers) {
  net::steady_timer timer(context);
  while (!over || in_hand > 0) {
    beast::error_code error;
    timer.expires_after(kLook);
    co_await timer.async_wait(Into(&error));
    if (over || !handlers.over()) continue;
    over = true;
    acceptor.close(error);
    WakeAll();
  }
  context.stop();
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(int port, ServerLimits limits) {
  auto parts = std::make_unique<Parts>(limits);
  const Tcp::endpoint endpoint(net::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
  beast::error_code error;
  parts->acceptor.open(endpoint.protocol(), error);
  if (!error) parts->acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) parts->acceptor.bind(endpoint, error);
  if (!error) parts->acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error)
    return UsageError(fmt::format("port {} cannot be served: {}; give another one, or 0 for any",
                                  port, error.message()));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

void HttpServer::Wake(const std::string& topic) {
  net::post(parts_->context, [parts = parts_.get(), topic] {
    const auto [begin, end] = parts->sleepers.equal_range(topic);
    for (auto each = begin; each != end; ++each) {
      each->second->woken = true;
      each->second->timer.cancel();
    }
  });
}

int HttpServer::port() const { return parts_->acceptor.local_endpoint().port(); }

void HttpServer::Serve(const ServerHandlers& handlers) {
  net::co_spawn(parts_->context, parts_->Accept(handlers), net::detached);
  net::co_spawn(parts_->context, parts_->Watch(handlers), net::detached);
  parts_->context.run();
  parts_->pool.join();
}

}  // namespace assay
