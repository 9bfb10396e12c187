#include "http/client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/clock.h"

namespace assay {
namespace {

struct FreeHandle {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;

// Headers, which may hold a key: wiped before they are freed.
class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() {
    for (curl_slist* item = list_; item != nullptr; item = item->next)
      ::explicit_bzero(item->data, ::strlen(item->data));
    ::curl_slist_free_all(list_);
  }
  void Add(const char* line) {
    list_ = ::curl_slist_append(list_, line);
    ASSAY_CHECK(list_ != nullptr);
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

struct Transfer {
  const HttpRequest& request;
  StopToken stop;
  CURL* handle;
  HttpReply reply = {};
  bool too_large = false, has_end = false, is_silent = false;
  int64_t last_byte_ns = MonotonicNs();

  int status() const {
    long status = 0;
    ::curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }
};

size_t TakeBytes(char* bytes, size_t, size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  std::string& body = transfer.reply.body;
  transfer.last_byte_ns = MonotonicNs();
  if (transfer.request.take && transfer.status() == 200) {
    transfer.has_end = !transfer.request.take({bytes, count});
    return transfer.has_end ? 0 : count;
  }
  const std::string& mark = transfer.request.end_mark;
  if (body.size() + count > transfer.request.reply_bytes_max) {
    body.append(bytes, transfer.request.reply_bytes_max - body.size());
    transfer.too_large = true;
    return 0;
  }
  const size_t from = body.size() - std::min(body.size(), mark.size());
  body.append(bytes, count);
  transfer.has_end = !mark.empty() && body.find(mark, from) != std::string::npos;
  return transfer.has_end ? 0 : count;  // 0 ends the transfer
}

// libcurl calls it about once a second, and as bytes come. Its own limit on slowness looks at a
// mean of several seconds: a burst before the silence would lengthen it.
int LookAtStop(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const double silent_s = static_cast<double>(MonotonicNs() - transfer.last_byte_ns) / 1e9;
  transfer.is_silent = silent_s >= transfer.request.times.idle_s;
  return transfer.stop.stopped() || transfer.is_silent ? 1 : 0;
}

std::string HeaderOf(CURL* handle, const char* name) {
  curl_header* header = nullptr;
  return ::curl_easy_header(handle, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value
                                                                                     : "";
}

HttpReply::End EndOf(CURLcode code, const Transfer& transfer) {
  if (code == CURLE_OK || transfer.has_end) return HttpReply::End::kWhole;
  if (transfer.too_large) return HttpReply::End::kTooLarge;
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
      return transfer.stop.stopped() ? HttpReply::End::kStopped : HttpReply::End::kTimedOut;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return HttpReply::End::kRefused;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      return HttpReply::End::kNotReached;
    case CURLE_OPERATION_TIMEDOUT: {
      curl_off_t connected_us = 0;
      ::curl_easy_getinfo(transfer.handle, CURLINFO_CONNECT_TIME_T, &connected_us);
      return connected_us > 0 ? HttpReply::End::kTimedOut : HttpReply::End::kNotReached;
    }
    default:
      return HttpReply::End::kBroken;
  }
}

void SetTimes(CURL* handle, const HttpTimes& times) {
  const auto ms = [](double seconds) { return std::max(1L, static_cast<long>(seconds * 1e3)); };
  ::curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, ms(times.connect_s));
  ::curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, ms(times.total_s));
}

void SetMethod(CURL* handle, const HttpRequest& request) {
  if (request.method != "POST") {
    ::curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    return;
  }
  ::curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  ::curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
}

class CurlClient : public HttpClient {
 public:
  HttpReply Send(const HttpRequest& request, StopToken stop) override {
    const Handle handle(::curl_easy_init());
    ASSAY_CHECK(handle != nullptr);
    Transfer transfer{request, stop, handle.get()};
    if (stop.stopped()) {
      transfer.reply.end = HttpReply::End::kStopped;
      return transfer.reply;
    }
    CURL* curl = handle.get();
    HeaderList headers;
    for (const std::string& header : request.headers) headers.Add(header.c_str());
    headers.Add("expect:");  // no wait for '100 Continue'
    if (request.key != nullptr && !request.key->empty()) {
      std::string header = request.key_header;
      header.reserve(header.size() + request.key->text().size() + 1);  // no copy that stays
      header += request.key->text();
      headers.Add(header.c_str());
      Wipe(header);
    }
    char error[CURL_ERROR_SIZE] = "";
    ::curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    ::curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    ::curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    if (const auto parts = ParseUrl(request.url); parts && parts->is_on_this_machine())
      ::curl_easy_setopt(curl, CURLOPT_PROXY, "");
    ::curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(curl, CURLOPT_USERAGENT, "assay");
    ::curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    SetMethod(curl, request);
    ::curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    ::curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &TakeBytes);
    ::curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    ::curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    ::curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &LookAtStop);
    ::curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
    SetTimes(curl, request.times);
    const CURLcode code = ::curl_easy_perform(curl);
    return Finish(transfer, code, error);
  }

 private:
  static HttpReply Finish(Transfer& transfer, CURLcode code, const char* error) {
    HttpReply& reply = transfer.reply;
    reply.end = EndOf(code, transfer);
    reply.status = transfer.status();
    reply.content_type = HeaderOf(transfer.handle, "content-type");
    reply.retry_after = HeaderOf(transfer.handle, "retry-after");
    reply.location = HeaderOf(transfer.handle, "location");
    if (reply.end == HttpReply::End::kTooLarge) {
      reply.error = "the reply is too large";
    } else if (reply.end == HttpReply::End::kTimedOut && transfer.is_silent) {
      reply.error = fmt::format("not a byte came for {:.0f} s", transfer.request.times.idle_s);
    } else if (reply.end != HttpReply::End::kWhole) {
      reply.error = error[0] != '\0' ? error : ::curl_easy_strerror(code);
    }
    return std::move(reply);
  }
};

}  // namespace

bool UrlParts::is_on_this_machine() const {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

std::optional<UrlParts> ParseUrl(const std::string& url) {
  const std::unique_ptr<CURLU, decltype(&::curl_url_cleanup)> parsed(::curl_url(),
                                                                     &::curl_url_cleanup);
  if (::curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const auto part = [&parsed](CURLUPart which) {
    char* text = nullptr;
    std::string copy;
    if (::curl_url_get(parsed.get(), which, &text, 0) == CURLUE_OK) copy = text;
    ::curl_free(text);
    return copy;
  };
  UrlParts parts{part(CURLUPART_SCHEME), part(CURLUPART_HOST)};
  if (parts.scheme != "http" && parts.scheme != "https") return std::nullopt;
  parts.has_login = !part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty();
  parts.has_more = !part(CURLUPART_QUERY).empty() || !part(CURLUPART_FRAGMENT).empty();
  return parts;
}

std::unique_ptr<HttpClient> MakeHttpClient() {
  static std::once_flag once;
  std::call_once(once, [] { ASSAY_CHECK(::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
  return std::make_unique<CurlClient>();
}

}  // namespace assay
