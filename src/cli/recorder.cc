#include "cli/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/files.h"
#include "base/hash.h"
#include "base/trace.h"
#include "cli/options.h"

namespace assay {

constexpr uint64_t kFileBytesMax = 16 << 20;

std::string DefaultArchive() { return (DataFolder() / "archive.sqlite").string(); }

Recorder::Recorder(const std::string& path, bool off)
    : path_(path.empty() ? DefaultArchive() : path), off_(off) {}

void Recorder::Judged(const JudgedSource& judged, const Verdict& verdict) {
  if (off_) return;
  std::vector<NewRecord> records;
  AddFiles(verdict, &records);
  for (NewRecord& record : RecordsOfVerdict(judged, verdict)) records.push_back(std::move(record));
  Keep(records);
}

void Recorder::Judged(std::span<const JudgedCandidate> judged) {
  if (off_ || judged.empty()) return;
  std::vector<NewRecord> records;
  for (const JudgedCandidate& each : judged) {
    if (each.verdict != nullptr) AddFiles(*each.verdict, &records);
    std::vector<NewRecord> its = each.verdict != nullptr
                                     ? RecordsOfVerdict(each.source, *each.verdict)
                                     : RecordsOfFailure(each.source, *each.error);
    if (each.verdict != nullptr) its.back().once = true;
    std::ranges::move(its, std::back_inserter(records));
  }
  Keep(records);
}

void Recorder::AddFiles(const Verdict& verdict, std::vector<NewRecord>* records) {
  const auto add = [&](RecordKind kind, const std::string& path, const std::string& hash) {
    if (files_.contains(hash)) return;
    auto content = ReadFile(path, kFileBytesMax);
    if (!content || Sha256Hex(*content) != hash) return;
    records->push_back(RecordOfFile(kind, path, verdict.problem.name, std::move(*content)));
    files_.insert(hash);
  };
  add(RecordKind::kReference, verdict.problem.path, verdict.problem.hash);
  if (verdict.speed && verdict.speed->against)
    add(RecordKind::kCandidate, verdict.speed->against->path, verdict.speed->against->hash);
}

void Recorder::Unjudged(const JudgedSource& judged, const Error& error) {
  if (!off_) Keep(RecordsOfFailure(judged, error));
}

void Recorder::Add(NewRecord record) {
  if (!off_) Keep({std::move(record)});
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
    OpenStoreOptions options;
    options.tell = [](const std::string& what) { Notice(what); };
    ASSAY_ASSIGN_OR_RETURN(store_, OpenStore(path_, StoreAccess::kWrite, std::move(options)));
  }
  ASSAY_RETURN_IF_ERROR(store_->Append(records));
  return {};
}

void Recorder::Keep(const std::vector<NewRecord>& records) {
  const Span span("record in the archive");
  const auto appended = Append(records);
  if (appended) return;
  store_.reset();  // the next record tries again
  files_.clear();
  if (std::exchange(told_, true)) return;
  Notice(fmt::format("not recorded in the archive: {}", appended.error().message));
}

}  // namespace assay
