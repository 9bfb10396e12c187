#include "cli/recorder.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/trace.h"
#include "cli/options.h"

namespace assay {

std::string DefaultArchive() { return (DataFolder() / "archive.sqlite").string(); }

Recorder::Recorder(const std::string& path, bool off)
    : path_(path.empty() ? DefaultArchive() : path), off_(off) {}

void Recorder::Judged(const JudgedSource& judged, const Verdict& verdict) {
  if (!off_) Keep(RecordsOfVerdict(judged, verdict));
}

void Recorder::Unjudged(const JudgedSource& judged, const Error& error) {
  if (!off_) Keep(RecordsOfFailure(judged, error));
}

void Recorder::RunBegan(const std::string& folder, const std::string& text,
                        const std::string& terms) {
  NewRecord record;
  record.facts = {RecordKind::kRun, folder, "", "", ""};
  record.content = text;
  record.terms = terms;
  if (!off_) Keep({std::move(record)});
}

Result<void> Recorder::Append(const std::vector<NewRecord>& records) {
  if (!store_) {
    ASSAY_ASSIGN_OR_RETURN(store_, SqliteStore::Open(path_));
  }
  ASSAY_RETURN_IF_ERROR(store_->Append(records));
  return {};
}

void Recorder::Keep(const std::vector<NewRecord>& records) {
  const Span span("record in the archive");
  const auto appended = Append(records);
  if (appended) return;
  store_.reset();  // the next record tries again
  if (std::exchange(told_, true)) return;
  Notice(fmt::format("not recorded in the archive: {}", appended.error().message));
}

}  // namespace assay
