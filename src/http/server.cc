// Theory of operation. One thread runs the connections, as coroutines; a pool of threads runs the
// handlers, so that a slow one holds up neither refusals nor other connections. A request's header
// is read and judged before its body, so that a peer without a token can send little.
#include "http/server.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <chrono>

namespace assay {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = net::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
constexpr milliseconds kWaitForRoom{10};

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

}  // namespace

struct HttpServer::Parts {
  explicit Parts(ServerLimits given) : limits(given), pool(given.handlers) {}

  net::awaitable<void> Accept(const ServerHandlers& handlers);
  net::awaitable<void> Watch(const ServerHandlers& handlers);
  net::awaitable<void> Connection(Tcp::socket socket, const ServerHandlers& handlers);
  // One request and its reply. False: the connection ends.
  net::awaitable<bool> Exchange(beast::tcp_stream& stream, beast::flat_buffer& buffer,
                                const ServerHandlers& handlers);
  net::awaitable<bool> Send(beast::tcp_stream& stream, ServedReply reply, bool head,
                            bool keep_alive);
  net::awaitable<ServedReply> Answer(const ServedRequest& request, const ServerHandlers& handlers);

  const ServerLimits limits;
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

net::awaitable<ServedReply> HttpServer::Parts::Answer(const ServedRequest& request,
                                                      const ServerHandlers& handlers) {
  // A coroutine of the pool's; this one goes on in its own thread afterwards.
  auto work = [](const ServedRequest& asked,
                 const ServerHandlers& by) -> net::awaitable<ServedReply> {
    co_return by.answer(asked);
  };
  co_return co_await net::co_spawn(pool, work(request, handlers), net::use_awaitable);
}

net::awaitable<bool> HttpServer::Parts::Exchange(beast::tcp_stream& stream,
                                                 beast::flat_buffer& buffer,
                                                 const ServerHandlers& handlers) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
  parser.body_limit(limits.body_bytes_max);
  beast::error_code error;
  stream.expires_after(milliseconds(limits.idle_ms));
  co_await http::async_read_header(stream, buffer, parser, Into(&error));
  std::optional<ServedReply> refusal;
  ServedRequest request;
  ++in_hand;
  if (!error) {
    request = RequestOf(parser.get());
    refusal = handlers.refuse(request);
    if (!refusal && beast::iequals(request.Header("expect"), "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, 11);
      http::response_serializer<http::empty_body> serializer(go_on);
      co_await http::async_write(stream, serializer, Into(&error));
    }
  }
  if (!error && !refusal) {
    // Large bodies get the time once more for each part of them.
    while (!error && !parser.is_done()) {
      stream.expires_after(milliseconds(limits.idle_ms));
      co_await http::async_read_some(stream, buffer, parser, Into(&error));
    }
  }
  bool goes_on = false;
  const bool head = request.method == "HEAD";
  if (refusal) {
    // The body, if there is one, is left unread: the connection ends.
    const bool whole = parser.is_done();
    goes_on = co_await Send(stream, std::move(*refusal), head, whole && parser.keep_alive());
  } else if (error) {
    if (const int status = StatusOf(error); status != 0)
      co_await Send(stream, handlers.fault(status, error.message()), head, false);
  } else {
    request.body = std::move(parser.get().body());
    stream.expires_never();
    ServedReply reply = co_await Answer(request, handlers);
    goes_on = co_await Send(stream, std::move(reply), head, parser.keep_alive() && !over);
  }
  --in_hand;
  co_return goes_on;
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

int HttpServer::port() const { return parts_->acceptor.local_endpoint().port(); }

void HttpServer::Serve(const ServerHandlers& handlers) {
  net::co_spawn(parts_->context, parts_->Accept(handlers), net::detached);
  net::co_spawn(parts_->context, parts_->Watch(handlers), net::detached);
  parts_->context.run();
  parts_->pool.join();
}

}  // namespace assay
