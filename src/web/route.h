// A request that has passed the guard, and the routes that answer such.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "http/forms.h"
#include "http/server.h"
#include "serve/hall.h"

namespace assay {

// Those who may.
enum class Access {
  kAnyone,
  kReader,  // members; anyone, if the server is public
  kMember,  // who has an account
  kMentor,  // of the server, or of any class: handlers ask which
  kServerMentor,
};

struct WebRequest {
  const ServedRequest& http;
  std::string path;
  FieldMap query, captures;     // captures: of the route's pattern
  FieldMap form;                // of a body that is a form, its files left out
  std::vector<FormPart> files;  // of a multipart form
  std::optional<Account> account = {};
  std::string session = {};  // of a browser; empty: a program's token, or nobody
  std::string csrf = {};     // that the session's forms carry
  std::string origin = {};   // "http://127.0.0.1:8080": the server's own, as the peer knows it
  bool is_secure = false;    // the peer talks to a proxy by TLS
  Instant now = {};

  bool IsMentor() const { return account && account->role == Role::kMentor; }
  // Of the query, or of the form; empty: it is missing.
  std::string Query(const std::string& name) const;
  std::string Form(const std::string& name) const;
  // A capture that is a number from 1 on; nullopt: it is none.
  std::optional<int64_t> Id(const std::string& name) const;
};

// The hall's mutex is held while a handler runs. A reply's stream or wait takes it itself.
using Handler = std::function<ServedReply(Hall&, const WebRequest&)>;

inline constexpr size_t kBodyBytesMax = size_t{2} << 20;

struct Route {
  std::string method, pattern;  // "GET", "/api/jobs/{id}"
  Access access = Access::kMember;
  Handler handler;
  size_t body_bytes_max = kBodyBytesMax;
};

// Wakes those who wait for a topic.
using WakeFunction = std::function<void(const std::string& topic)>;

// Topics.
inline constexpr const char* kQueueTopic = "queue";
std::string JobTopic(int64_t job);

}  // namespace assay
