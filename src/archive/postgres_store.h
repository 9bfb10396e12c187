// The archive in a PostgreSQL database (docs/database.md), by a URL.
//
// Theory of operation. An append is one transaction that holds the chain's lock; the server gives
// its records their time, place and hash, and a commit is on disk before it returns. Bytes are kept
// before it, in a transaction of their own: nobody waits for them, and bytes without a record do no
// harm. A lost connection is sought again; an append whose answer was lost is known by its token,
// so it is neither lost nor done twice.
#pragma once

#include <memory>
#include <string>

#include "archive/postgres_session.h"
#include "archive/store.h"

namespace assay {

class PostgresStore : public Store {
 public:
  // Makes the tables where they are missing. Errors: PostgresConnection::Open, MigratePostgres.
  static Result<std::unique_ptr<PostgresStore>> Open(const std::string& url,
                                                     PostgresSessionOptions options = {});
  // For reading alone. Errors (kUsage): there is no archive.
  static Result<std::unique_ptr<PostgresStore>> OpenToRead(const std::string& url,
                                                           PostgresSessionOptions options = {});

  Result<std::string> Put(std::string_view bytes) override;
  Result<std::string> Get(const std::string& hash) override;
  Result<std::vector<Record>> Append(std::span<const NewRecord> records) override;
  Result<std::vector<Record>> Find(const RecordQuery& query) override;
  Result<int64_t> Adopt(std::span<const Record> records,
                        std::span<const std::string> bytes) override;

 private:
  PostgresStore(PostgresSession session, SchemaAccess access)
      : session_(std::move(session)), access_(access) {}
  static Result<std::unique_ptr<PostgresStore>> OpenFor(const std::string& url,
                                                        PostgresSessionOptions options,
                                                        SchemaAccess access);
  Result<void> CheckWrite() const;
  Result<std::vector<Record>> AppendOnce(PostgresConnection& connection,
                                         std::span<const NewRecord> records,
                                         const std::string& token, bool again);

  PostgresSession session_;
  SchemaAccess access_;
};

}  // namespace assay
