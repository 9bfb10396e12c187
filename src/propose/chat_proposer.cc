#include "propose/chat_proposer.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>

#include "answer/text.h"
#include "base/clock.h"
#include "base/hash.h"
#include "propose/json_read.h"

namespace assay {
namespace {

constexpr int kLookMs = 50;
// Beside the prompt's text: roles and separators.
constexpr int64_t kTokensAround = 64;

bool WaitSeconds(double seconds, StopToken stop) {
  const Deadline deadline = Deadline::AfterSeconds(seconds);
  while (!deadline.Expired() && !stop.stopped())
    ::poll(nullptr, 0, std::min(deadline.RemainingMs(), kLookMs));
  return !stop.stopped();
}

void Add(Usage& sum, const Usage& usage) {
  sum.tokens_in += usage.tokens_in;
  sum.tokens_out += usage.tokens_out;
  sum.usd += usage.usd;
}

Error Interrupted() { return {ErrorKind::kInterrupted, "interrupted"}; }

}  // namespace

ChatSurroundings RealSurroundings() {
  return {MakeHttpClient(), &WaitSeconds, [] { return int64_t{::time(nullptr)}; }};
}

ChatProposer::ChatProposer(ChatTerms terms, std::unique_ptr<ChatProtocol> protocol, ApiKey key,
                           ChatSurroundings surroundings)
    : terms_(std::move(terms)),
      protocol_(std::move(protocol)),
      key_(std::move(key)),
      surroundings_(std::move(surroundings)) {}

double ChatProposer::UsdOf(const Usage& usage) const {
  if (usage.usd > 0) return usage.usd;  // the service's own word
  return (static_cast<double>(usage.tokens_in) * terms_.facts.usd_in +
          static_cast<double>(usage.tokens_out) * terms_.facts.usd_out) /
         1e6;
}

Usage ChatProposer::Reservation(const Prompt& prompt) const {
  Usage usage;
  // A token has at least one byte.
  usage.tokens_in = static_cast<int64_t>(prompt.system.size() + prompt.text.size()) + kTokensAround;
  usage.tokens_out = TokensAsked(prompt, terms_.facts);
  usage.usd = UsdOf(usage);
  usage.wall_s = terms_.times.total_s;
  return usage;
}

Result<void> ChatProposer::Check(const Prompt& prompt) const {
  if (key_.IsIn(prompt.text) || key_.IsIn(prompt.system))
    return Failed({ErrorKind::kUsage, "the prompt contains the key: it was not sent"});
  return {};
}

HttpRequest ChatProposer::RequestFor(const Prompt& prompt) const {
  HttpRequest request;
  request.url = terms_.base + std::string(protocol_->path());
  request.headers = protocol_->headers();
  request.key_header = protocol_->key_header();
  request.key = &key_;
  request.body = protocol_->Body(prompt, terms_.model, terms_.facts, terms_.stream);
  if (terms_.stream) request.end_mark = protocol_->end_mark();
  request.times = terms_.times;
  // No byte comes before the whole answer does: the total alone bounds it.
  if (!terms_.stream) request.times.idle_s = 2 * request.times.total_s;
  return request;
}

std::unexpected<Error> ChatProposer::Failed(Error error) const {
  if (error.kind != ErrorKind::kInterrupted)
    error.message = fmt::format("{}: {}", terms_.name, error.message);
  error.message = key_.Scrubbed(std::move(error.message));
  return std::unexpected(std::move(error));
}

ChatProposer::Attempt ChatProposer::ReadReply(const HttpReply& reply, bool is_stream) const {
  Attempt attempt;
  ChatReply read = protocol_->Read(key_.Scrubbed(reply.body), is_stream);
  attempt.usage = read.answer.usage;
  attempt.usage.usd = UsdOf(attempt.usage);
  if (read.kind == ChatReply::Kind::kAnswer) {
    Answer& answer = read.answer;
    answer.usage = attempt.usage;
    // Once more, since JSON can spell a key in several ways.
    for (std::string* text : {&answer.text, &answer.reasoning, &answer.model, &answer.finish})
      *text = key_.Scrubbed(MendUtf8(std::move(*text)));
    attempt.answer = std::move(answer);
    return attempt;
  }
  attempt.again = true;
  attempt.is_broken = read.kind == ChatReply::Kind::kBroken;
  attempt.error.message = reply.end == HttpReply::End::kWhole
                              ? read.trouble
                              : fmt::format("{} ({})", read.trouble, reply.error);
  return attempt;
}

ChatProposer::Attempt ChatProposer::ReadRefusal(const HttpReply& reply) {
  Attempt attempt;
  if (reply.status >= 300 && reply.status < 400) {
    attempt.error = {
        ErrorKind::kUsage,
        fmt::format("HTTP {}: it is elsewhere; redirects are not followed: use its own "
                    "URL, {}",
                    reply.status, reply.location)};
    return attempt;
  }
  const ServiceError error = ReadServiceError(key_.Scrubbed(reply.body));
  attempt.error.message =
      fmt::format("HTTP {}{}{}", reply.status, error.message.empty() ? "" : ": ", error.message);
  Remedy remedy = RemedyOf(reply.status, error);
  if (has_answered_ && (reply.status == 400 || reply.status == 403 || reply.status == 422))
    remedy = Remedy::kFixPrompt;
  attempt.again = remedy == Remedy::kRetry;
  attempt.is_busy = reply.status == 429 || reply.status == 503 || reply.status == 529;
  if (attempt.again && !reply.retry_after.empty())
    attempt.wait_s = ParseRetryAfter(reply.retry_after, surroundings_.unix_time_s());
  if (attempt.wait_s > terms_.retry.retry_after_s_max) {
    attempt.again = false;
    attempt.error.message +=
        fmt::format("; it asks to wait {:.0f} s, and at most {:.0f} s are waited: go on later",
                    *attempt.wait_s, terms_.retry.retry_after_s_max);
    return attempt;
  }
  if (remedy != Remedy::kFixRequest) return attempt;
  attempt.error.kind = ErrorKind::kUsage;
  if (reply.status == 401 || reply.status == 403) {
    attempt.error.message += key_.empty()
                                 ? fmt::format(": it wants a key: {}", terms_.key_advice)
                                 : fmt::format(": the key is not accepted: {}", terms_.key_advice);
  } else if (reply.status == 404) {
    attempt.error.message += fmt::format(": look at the model's name and at the URL, {}{}",
                                         terms_.base, protocol_->path());
  } else if (reply.status == 400 || reply.status == 422) {
    attempt.error.message += ": if it takes no such field, say so in a table of models (--models)";
  }
  return attempt;
}

ChatProposer::Attempt ChatProposer::Try(const HttpRequest& request, StopToken stop) {
  const HttpReply reply = surroundings_.client->Send(request, stop);
  Attempt attempt;
  switch (reply.end) {
    case HttpReply::End::kStopped:
      attempt.error = Interrupted();
      return attempt;
    case HttpReply::End::kRefused:
      attempt.error = {ErrorKind::kUsage,
                       fmt::format("{}: write the URL as http://HOST:PORT/v1", reply.error)};
      return attempt;
    case HttpReply::End::kNotReached:
      attempt.again = true;
      attempt.error.message =
          fmt::format("cannot reach {} ({}): is the server running?", request.url, reply.error);
      return attempt;
    case HttpReply::End::kTooLarge:
      attempt.error.message =
          fmt::format("{}: more than {} MiB", reply.error, request.reply_bytes_max >> 20);
      return attempt;
    case HttpReply::End::kWhole:
    case HttpReply::End::kBroken:
    case HttpReply::End::kTimedOut:
      break;
  }
  if (reply.status == 0) {
    attempt.again = attempt.is_broken = true;
    attempt.error.message = fmt::format("no reply ({})", reply.error);
    return attempt;
  }
  if (reply.status != 200) return ReadRefusal(reply);
  // A server that does not stream answers in one document all the same.
  return ReadReply(reply, reply.content_type.starts_with("text/event-stream"));
}

Result<Answer> ChatProposer::Propose(const Prompt& prompt, StopToken stop) {
  if (const std::lock_guard lock(mutex_); refused_) return std::unexpected(*refused_);
  ASSAY_RETURN_IF_ERROR(Check(prompt));
  const HttpRequest request = RequestFor(prompt);
  const int64_t start_ns = MonotonicNs();
  Usage spent;
  int broken = 0;
  for (int number = 1;; ++number) {
    const double wait_s = static_cast<double>(not_before_ns_ - MonotonicNs()) / 1e9;
    if (wait_s > 0 && !surroundings_.wait(wait_s, stop)) return Failed(Interrupted());
    Attempt attempt = Try(request, stop);
    if (attempt.answer) {
      has_answered_ = true;
      Add(attempt.answer->usage, spent);
      attempt.answer->usage.wall_s = static_cast<double>(MonotonicNs() - start_ns) / 1e9;
      return *std::move(attempt.answer);
    }
    Add(spent, attempt.usage);
    if (attempt.is_broken) ++broken;
    if (!attempt.again) {
      const auto failed = Failed(std::move(attempt.error));
      if (failed.error().kind == ErrorKind::kUsage) {
        const std::lock_guard lock(mutex_);
        refused_ = failed.error();
      }
      return failed;
    }
    if (number >= terms_.retry.attempts_max || broken >= terms_.retry.broken_max) {
      attempt.error.message =
          fmt::format("no answer in {} attempts: {}", number, attempt.error.message);
      return Failed(std::move(attempt.error));
    }
    const std::string spread = fmt::format("{} {}", prompt.key, number);
    const double pause_s = attempt.wait_s.value_or(
        BackOffSeconds(terms_.retry.wait, number, FastHash(spread.data(), spread.size())));
    if (attempt.is_busy) {
      const int64_t until_ns = MonotonicNs() + static_cast<int64_t>(pause_s * 1e9);
      int64_t before_ns = not_before_ns_;
      while (before_ns < until_ns && !not_before_ns_.compare_exchange_weak(before_ns, until_ns)) {
      }
    }
    if (!surroundings_.wait(pause_s, stop)) return Failed(Interrupted());
  }
}

}  // namespace assay
