#include "serve/hall_archive.h"

#include <fmt/format.h>

#include <filesystem>

#include "archive/open_store.h"
#include "archive/postgres_store.h"
#include "archive/sqlite_store.h"
#include "base/files.h"
#include "base/trimmed.h"
#include "serve/private_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char *kFile = "archive.sqlite", *kPlaceFile = "archive-place";
constexpr size_t kPlaceBytesMax = 4096;
// A request waits so long for a database that is away, then it is answered by an error.
constexpr double kPatienceS = 5;

Result<void> ForgetBoard(Database& database) {
  for (const char* sql :
       {"DELETE FROM board", "DELETE FROM settings WHERE name = 'board sequence'"}) {
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement statement, database.Prepare(sql));
    ASSAY_RETURN_IF_ERROR(statement.Step());
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> OpenHallArchive(Database& database, const std::string& place) {
  const fs::path folder = database.folder(), file = folder / kFile,
                 place_file = folder / kPlaceFile;
  std::error_code code;
  std::string known;
  if (fs::exists(place_file, code)) {
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(place_file, kPlaceBytesMax));
    known = Trimmed(text);
  }
  if (place.empty() && known.empty()) {
    const PrivateFiles keeps_private(file.string());
    return SqliteStore::Open(file.string());
  }
  if (place.empty())
    return UsageError(
        fmt::format("the archive of {} is {}: give it by --archive", folder.string(), known));
  if (!IsPostgresUrl(place))
    return UsageError("--archive: a server takes postgresql://..., or keeps a file in its folder");
  if (fs::exists(file, code))
    return UsageError(fmt::format(
        "{} has an archive of its own: copy it by assay archive copy {} URL, then move that file "
        "away",
        folder.string(), file.string()));
  const std::string name = StoreName(place);
  if (!known.empty() && known != name)
    return UsageError(
        fmt::format("the archive of {} is {}, not {}; if it is the same one, remove "
                    "{}",
                    folder.string(), known, name, place_file.string()));
  PostgresSessionOptions session;
  session.patience_s = kPatienceS;
  ASSAY_ASSIGN_OR_RETURN(auto store, PostgresStore::Open(place, std::move(session)));
  if (!known.empty()) return store;
  ASSAY_RETURN_IF_ERROR(database.Write([&] { return ForgetBoard(database); }));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(place_file, name + "\n"));
  return store;
}

}  // namespace assay
