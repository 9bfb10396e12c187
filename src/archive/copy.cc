#include "archive/copy.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

namespace assay {
namespace {

constexpr int64_t kPageRecords = 256;
constexpr size_t kBatchBytes = 8 << 20;
constexpr size_t kRememberedMax = 1 << 20;  // hashes of bytes that were sent

Result<Record> LastOf(Store& store) {
  RecordQuery newest;
  newest.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(std::vector<Record> found, store.Find(newest));
  if (!found.empty()) return std::move(found.front());
  Record none;
  none.hash = kFirstParent;
  return none;
}

// The records of `to` are the first ones of `from`.
Result<void> CheckBeginning(Store& from, const Record& last_of_to) {
  if (last_of_to.sequence == 0) return {};
  RecordQuery same;
  same.after = last_of_to.sequence - 1;
  same.oldest_first = true;
  same.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, from.Find(same));
  if (found.empty())
    return UsageError(
        fmt::format("the archive to copy to goes on after the other's end, up to record {}: copy "
                    "the other way, or name another",
                    last_of_to.sequence));
  if (found.front().hash != last_of_to.hash)
    return UsageError(
        fmt::format("the archives have different records at {}: name an archive that is empty, or "
                    "that is an older copy",
                    last_of_to.sequence));
  return {};
}

class Copier {
 public:
  Copier(Store& from, Store& to, Record last) : from_(from), to_(to), last_(std::move(last)) {}

  const Record& last() const { return last_; }
  int64_t copied() const { return copied_; }

  // The next records, as far as they fit into a batch; false at the end.
  Result<bool> CopyPage() {
    RecordQuery next;
    next.after = last_.sequence;
    next.oldest_first = true;
    next.limit = kPageRecords;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> page, from_.Find(next));
    for (const Record& record : page) {
      ASSAY_RETURN_IF_ERROR(Add(record));
      if (bytes_size_ >= kBatchBytes) ASSAY_RETURN_IF_ERROR(Flush());
    }
    ASSAY_RETURN_IF_ERROR(Flush());
    return !page.empty();
  }

 private:
  Result<void> Add(const Record& record) {
    if (record.sequence != last_.sequence + 1 || record.parent != last_.hash ||
        RecordHash(record) != record.hash)
      return EnvironmentError(
          fmt::format("record {} of the archive to copy was changed, or does not follow {}: assay "
                      "archive verify says more; all before it are copied",
                      record.sequence, last_.sequence));
    for (const std::string* hash : {&record.content, &record.source, &record.terms}) {
      if (hash->empty() || !sent_.insert(*hash).second) continue;
      ASSAY_ASSIGN_OR_RETURN(std::string bytes, from_.Get(*hash));
      bytes_size_ += bytes.size();
      bytes_.push_back(std::move(bytes));
    }
    records_.push_back(record);
    last_ = record;
    return {};
  }

  Result<void> Flush() {
    ASSAY_ASSIGN_OR_RETURN(const int64_t adopted, to_.Adopt(records_, bytes_));
    copied_ += adopted;
    records_.clear();
    bytes_.clear();
    bytes_size_ = 0;
    if (sent_.size() > kRememberedMax) sent_.clear();
    return {};
  }

  Store& from_;
  Store& to_;
  Record last_;
  std::vector<Record> records_;
  std::vector<std::string> bytes_;
  size_t bytes_size_ = 0;
  std::unordered_set<std::string> sent_;
  int64_t copied_ = 0;
};

}  // namespace

Result<CopyReport> CopyArchive(Store& from, Store& to,
                               const std::function<void(int64_t)>& progress) {
  ASSAY_ASSIGN_OR_RETURN(Record last, LastOf(to));
  ASSAY_RETURN_IF_ERROR(CheckBeginning(from, last));
  CopyReport report;
  report.known = last.sequence;
  Copier copier(from, to, std::move(last));
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, copier.CopyPage());
    if (!more) break;
    if (progress) progress(copier.last().sequence);
  }
  report.copied = copier.copied();
  report.head = copier.last().hash;
  return report;
}

}  // namespace assay
