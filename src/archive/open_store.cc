#include "archive/open_store.h"

#include <filesystem>

#include "archive/postgres_store.h"
#include "archive/sqlite_store.h"

namespace assay {

Result<std::unique_ptr<Store>> OpenStore(const std::string& place, StoreAccess access,
                                         OpenStoreOptions options) {
  if (IsPostgresUrl(place)) {
    PostgresSessionOptions session;
    session.stop = options.stop;
    session.tell = std::move(options.tell);
    if (access == StoreAccess::kWrite) return PostgresStore::Open(place, std::move(session));
    return PostgresStore::OpenToRead(place, std::move(session));
  }
  if (access == StoreAccess::kWrite) return SqliteStore::Open(place);
  return SqliteStore::OpenToRead(place);
}

bool StoreMayExist(const std::string& place) {
  std::error_code code;
  return IsPostgresUrl(place) || std::filesystem::exists(place, code);
}

std::string StoreName(const std::string& place) {
  if (!IsPostgresUrl(place)) return place;
  return PostgresName(place).value_or("the database");
}

}  // namespace assay
