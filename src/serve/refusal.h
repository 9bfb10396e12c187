// The answer to a request that cannot be granted, with the HTTP status that says why.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "serve/database.h"

namespace assay {

struct Refusal {
  Refusal(int code, std::string reason, int64_t retry_s = 0)
      : status(code), why(std::move(reason)), retry_after_s(retry_s) {}
  // kUsage is the request's fault; anything else the server's.
  Refusal(const Error& error)  // NOLINT: errors pass up as refusals
      : status(error.kind == ErrorKind::kUsage ? 400 : 500), why(error.message) {}

  int status = 400;
  std::string why;            // what to do
  int64_t retry_after_s = 0;  // 0: never, as far as is known
};

template <typename T>
using Granted = std::expected<T, Refusal>;

// Runs `work` in one transaction of the database: after a refusal nothing of it is kept.
template <typename T>
Granted<T> WriteOrRefuse(Database& database, const std::function<Granted<T>()>& work) {
  std::optional<Granted<T>> granted;
  const auto written = database.Write([&]() -> Result<void> {
    granted = work();
    if (!*granted) return UsageError(granted->error().why);
    return {};
  });
  if (granted && !*granted) return std::move(*granted);
  if (!written) return std::unexpected(Refusal(written.error()));
  return std::move(*granted);
}

}  // namespace assay
