#include "archive/postgres.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace assay {
namespace {

constexpr uint32_t kByteaType = 17, kBigintType = 20, kTextType = 25, kRealType = 701,
                   kBigintArrayType = 1016, kTextArrayType = 1009;
constexpr const char* kUrlHint =
    "write postgresql://ROLE@HOST:PORT/DATABASE, and the password into ~/.pgpass";

// One line of libpq's several.
std::string OneLine(const char* message) {
  std::string line;
  for (const char* at = message; *at != '\0'; ++at) {
    if (*at != '\n')
      line += *at;
    else if (at[1] != '\0')
      line += "; ";
  }
  return line;
}

// The parts of a URL that may be shown.
struct UrlParts {
  std::string host, port, user, database;
};

Result<UrlParts> Parts(const std::string& url) {
  // libpq's own message may show a piece of the password.
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> read(
      PQconninfoParse(url.c_str(), nullptr), PQconninfoFree);
  if (!read || !IsPostgresUrl(url))
    return UsageError(fmt::format("this is no URL of PostgreSQL: {}", kUrlHint));
  UrlParts parts;
  for (const PQconninfoOption* each = read.get(); each->keyword != nullptr; ++each) {
    if (each->val == nullptr) continue;
    const std::string_view key = each->keyword;
    if (key == "host") parts.host = each->val;
    if (key == "port") parts.port = each->val;
    if (key == "user") parts.user = each->val;
    if (key == "dbname") parts.database = each->val;
  }
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::ranges::all_of(parts.port, is_digit))
    return UsageError(fmt::format("the port in the URL of PostgreSQL is no number: {}", kUrlHint));
  if (parts.host.find('@', 1) != std::string::npos)
    return UsageError(
        fmt::format("the URL of PostgreSQL has an @ too many: write %40 for one in a "
                    "password, or {}",
                    kUrlHint));
  return parts;
}

Error ConnectError(const std::string& name, const std::string& why) {
  const auto says = [&](std::string_view part) { return why.contains(part); };
  if (says("invalid "))  // an option's value, which may be a piece of a password
    return {ErrorKind::kUsage, fmt::format("the URL of PostgreSQL has a part that is not valid: {}",
                                           kUrlHint)};
  if (says("does not exist") && says("database"))
    return {ErrorKind::kUsage,
            fmt::format("{}: {}; create it with createdb, or name another", name, why)};
  if (says("authentication failed") || says("no password supplied") || says("does not exist") ||
      says("pg_hba.conf") || says("permission denied for database"))
    return {ErrorKind::kUsage,
            fmt::format("{}: {}; check the role in the URL and its line in ~/.pgpass", name, why)};
  return {ErrorKind::kEnvironment,
          fmt::format("cannot reach {}: {}; check that the server runs and the URL is right", name,
                      why)};
}

// An answer's number: big-endian, of 1, 2, 4 or 8 bytes.
int64_t BigEndian(const char* bytes, int size) {
  uint64_t number =
      size > 0 && size < 8 && static_cast<signed char>(bytes[0]) < 0 ? ~uint64_t{0} : uint64_t{0};
  for (int i = 0; i < size; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return static_cast<int64_t>(number);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') quoted += '\\';
    quoted += each;
  }
  return quoted + '"';
}

}  // namespace

bool IsPostgresUrl(std::string_view place) {
  return place.starts_with("postgresql://") || place.starts_with("postgres://");
}

Result<std::string> PostgresName(const std::string& url) {
  ASSAY_ASSIGN_OR_RETURN(const UrlParts parts, Parts(url));
  return fmt::format("postgresql://{}{}{}{}{}/{}", parts.user, parts.user.empty() ? "" : "@",
                     parts.host, parts.port.empty() ? "" : ":", parts.port, parts.database);
}

PostgresValues& PostgresValues::Text(std::string_view text) {
  values_.push_back({std::string(text), kTextType, true});
  return *this;
}

PostgresValues& PostgresValues::Bytes(std::string_view bytes) {
  values_.push_back({std::string(bytes), kByteaType, true});
  return *this;
}

PostgresValues& PostgresValues::Number(int64_t number) {
  values_.push_back({fmt::format("{}", number), kBigintType, false});
  return *this;
}

PostgresValues& PostgresValues::Real(double number) {
  values_.push_back({fmt::format("{}", number), kRealType, false});
  return *this;
}

PostgresValues& PostgresValues::Texts(std::span<const std::string> texts) {
  std::string array = "{";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    array += Quoted(text);
  }
  values_.push_back({array + "}", kTextArrayType, false});
  return *this;
}

PostgresValues& PostgresValues::Numbers(std::span<const int64_t> numbers) {
  values_.push_back({fmt::format("{{{}}}", fmt::join(numbers, ",")), kBigintArrayType, false});
  return *this;
}

int PostgresRows::size() const { return PQntuples(result_.get()); }
int64_t PostgresRows::Number(int row, int column) const {
  return BigEndian(PQgetvalue(result_.get(), row, column), PQgetlength(result_.get(), row, column));
}
double PostgresRows::Real(int row, int column) const {
  return std::bit_cast<double>(Number(row, column));
}
std::string PostgresRows::Text(int row, int column) const {
  return std::string(PQgetvalue(result_.get(), row, column),
                     static_cast<size_t>(PQgetlength(result_.get(), row, column)));
}
void PostgresRows::Clear::operator()(pg_result* result) const { PQclear(result); }

void PostgresConnection::Finish::operator()(pg_conn* connection) const { PQfinish(connection); }

Result<PostgresConnection> PostgresConnection::Open(const std::string& url,
                                                    PostgresOptions options) {
  ASSAY_ASSIGN_OR_RETURN(std::string name, PostgresName(url));
  const std::string connect_s = fmt::format("{}", options.connect_s);
  // Those before the URL give way to it.
  const std::array<const char*, 7> keys = {"connect_timeout",
                                           "application_name",
                                           "keepalives_idle",
                                           "tcp_user_timeout",
                                           "dbname",
                                           "client_encoding",
                                           nullptr};
  const std::array<const char*, 7> values = {connect_s.c_str(), "assay", "30",   "30000",
                                             url.c_str(),       "UTF8",  nullptr};
  pg_conn* const handle = PQconnectdbParams(keys.data(), values.data(), 1);
  if (handle == nullptr) return EnvironmentError("there is no memory for a connection");
  PostgresConnection connection(handle, std::move(name), options);
  if (PQstatus(handle) != CONNECTION_OK)
    return std::unexpected(ConnectError(connection.name_, OneLine(PQerrorMessage(handle))));
  PQsetNoticeProcessor(
      handle, [](void*, const char*) {}, nullptr);
  if (PQsetnonblocking(handle, 1) != 0) return connection.Lost(OneLine(PQerrorMessage(handle)));
  return connection;
}

std::unexpected<Error> PostgresConnection::Lost(const std::string& why) {
  lost_ = true;
  passing_ = false;
  return EnvironmentError(fmt::format("the connection to {} is lost: {}", name_, why));
}

std::unexpected<Error> PostgresConnection::Failed(const pg_result* result) {
  const char* const field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  const char* const primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string why = OneLine(primary == nullptr ? PQresultErrorMessage(result) : primary);
  passing_ = state == "40P01" || state == "40001" || state == "57P03";
  if (PQstatus(handle_.get()) == CONNECTION_BAD || state.starts_with("57P") ||
      state.starts_with("08") || state.empty())
    return Lost(why);
  if (state == "42501")
    return UsageError(
        fmt::format("{}: {}; its owner may let this role by assay archive grant (docs/database.md)",
                    name_, why));
  if (state.starts_with("53"))
    return EnvironmentError(fmt::format(
        "{} has no room: {}; nothing was kept of this: give it more, and try again", name_, why));
  if (state == "P0001") return UsageError(fmt::format("{}: {}", name_, why));  // Assay's own
  return EnvironmentError(fmt::format("{}: {} ({})", name_, why, state));
}

// Waits until the socket can be read, or, with `writes`, written to; reads what there is.
Result<void> PostgresConnection::Pump(bool writes, int timeout_ms, bool* timed_out) {
  pollfd socket{PQsocket(handle_.get()), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0};
  const int ready = ::poll(&socket, 1, timeout_ms);
  *timed_out = ready == 0;
  if (ready < 0 && errno != EINTR) return Lost(std::strerror(errno));
  if (ready > 0 && (socket.revents & ~POLLOUT) != 0 && PQconsumeInput(handle_.get()) == 0)
    return Lost(OneLine(PQerrorMessage(handle_.get())));
  return {};
}

Result<void> PostgresConnection::Send(const PostgresCommand& command) {
  std::vector<Oid> types;
  std::vector<const char*> values;
  std::vector<int> sizes, formats;
  for (const auto& value : command.values.values_) {
    types.push_back(value.type);
    values.push_back(value.bytes.c_str());
    sizes.push_back(static_cast<int>(value.bytes.size()));
    formats.push_back(value.is_binary ? 1 : 0);
  }
  const std::string sql(command.sql);
  if (PQsendQueryParams(handle_.get(), sql.c_str(), static_cast<int>(values.size()), types.data(),
                        values.data(), sizes.data(), formats.data(), 1) == 0)
    return Lost(OneLine(PQerrorMessage(handle_.get())));
  return {};
}

Result<pg_result*> PostgresConnection::Next() {
  const Deadline deadline = Deadline::AfterSeconds(options_.answer_ms / 1e3);
  while (true) {
    const int unsent = PQflush(handle_.get());
    if (unsent < 0) return Lost(OneLine(PQerrorMessage(handle_.get())));
    if (PQisBusy(handle_.get()) == 0) return PQgetResult(handle_.get());
    bool timed_out = false;
    ASSAY_RETURN_IF_ERROR(Pump(unsent != 0, deadline.RemainingMs(), &timed_out));
    if (timed_out)
      return Lost(fmt::format("it has not answered for {} s", options_.answer_ms / 1000));
  }
}

// The result of the one command that was sent.
Result<PostgresRows> PostgresConnection::Only() {
  std::optional<PostgresRows> rows;
  std::optional<std::unexpected<Error>> error;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(pg_result* const result, Next());
    if (result == nullptr) break;
    PostgresRows each(result);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      if (!error) error = Failed(result);
    } else {
      rows = std::move(each);
    }
  }
  if (error) return *error;
  if (!rows) return Lost("it gave no answer");
  return std::move(*rows);
}

Result<void> PostgresConnection::Run(const std::string& sql) {
  if (PQsendQuery(handle_.get(), sql.c_str()) == 0)
    return Lost(OneLine(PQerrorMessage(handle_.get())));
  ASSAY_RETURN_IF_ERROR(Only());
  return {};
}

Result<PostgresRows> PostgresConnection::Query(std::string_view sql, const PostgresValues& values) {
  ASSAY_RETURN_IF_ERROR(Send({sql, values}));
  return Only();
}

Result<std::vector<PostgresRows>> PostgresConnection::Pipeline(
    std::span<const PostgresCommand> commands) {
  std::vector<PostgresRows> answers;
  if (commands.empty()) return answers;
  if (PQenterPipelineMode(handle_.get()) == 0) return Lost(OneLine(PQerrorMessage(handle_.get())));
  int syncs = 0;
  for (const PostgresCommand& command : commands) {
    ASSAY_RETURN_IF_ERROR(Send(command));
    if (!command.ends_transaction && &command != &commands.back()) continue;
    if (PQpipelineSync(handle_.get()) == 0) return Lost(OneLine(PQerrorMessage(handle_.get())));
    ++syncs;
  }
  std::optional<std::unexpected<Error>> error;
  bool passing = false;
  while (syncs > 0) {
    ASSAY_ASSIGN_OR_RETURN(pg_result* const result, Next());
    if (result == nullptr) {  // between the results of two commands
      if (PQstatus(handle_.get()) == CONNECTION_BAD) return Lost("it was closed");
      continue;
    }
    PostgresRows each(result);
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_PIPELINE_SYNC) {
      --syncs;
    } else if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      answers.push_back(std::move(each));
    } else if (status != PGRES_PIPELINE_ABORTED && !error) {
      error = Failed(result);
      passing = passing_;
      if (lost_) return *error;
    }
  }
  if (PQexitPipelineMode(handle_.get()) == 0) return Lost(OneLine(PQerrorMessage(handle_.get())));
  passing_ = passing;
  if (error) return *error;
  return answers;
}

Result<void> PostgresConnection::Listen(const std::string& channel) {
  return Run("LISTEN " + channel);
}

Result<bool> PostgresConnection::WaitForNotice(int timeout_ms) {
  const Deadline deadline = Deadline::AfterSeconds(timeout_ms / 1e3);
  bool came = false;
  while (true) {
    if (PQconsumeInput(handle_.get()) == 0) return Lost(OneLine(PQerrorMessage(handle_.get())));
    while (PGnotify* const notice = PQnotifies(handle_.get())) {
      came = true;
      PQfreemem(notice);
    }
    if (came || deadline.Expired()) return came;
    bool timed_out = false;
    ASSAY_RETURN_IF_ERROR(Pump(false, deadline.RemainingMs(), &timed_out));
  }
}

}  // namespace assay
