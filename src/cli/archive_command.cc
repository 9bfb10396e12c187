#include "cli/archive_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "archive/open_store.h"
#include "archive/record_json.h"
#include "base/unique_fd.h"
#include "cli/archive_dataset.h"
#include "cli/archive_feedback.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/recorder.h"
#include "model/outcome.h"
#include "model/verdict_json.h"
#include "report/card.h"
#include "report/terminal.h"
#include "report/text.h"
#include "report/text_diff.h"
#include "search/search_report.h"

namespace assay {
namespace {

constexpr size_t kHashShown = 12;
constexpr size_t kDigitsMin = 4;

Result<std::unique_ptr<Store>> OpenArchive(const std::string& path) {
  return OpenStore(path.empty() ? DefaultArchive() : path, StoreAccess::kRead);
}

// Ends a command: its text to stdout, or its error.
int Ended(const Result<int>& code) {
  if (!code) return ReportError(code.error());
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment, "cannot write to stdout"});
  return *code;
}

std::string ListLine(const Record& record, bool unicode) {
  const RecordFacts& facts = record.facts;
  return fmt::format("{:>7}  {}  {:<9}  {}  {:<13}  {:<20}  {}\n", record.sequence, record.time,
                     RecordKindName(facts.kind), record.hash.substr(0, kHashShown),
                     facts.outcome.empty() ? "-" : Printable(facts.outcome, unicode),
                     facts.problem.empty() ? "-" : Printable(facts.problem, unicode),
                     Printable(facts.name, unicode));
}

Result<void> CheckOutcome(const std::string& name) {
  if (name.empty() || OutcomeFromName(name)) return {};
  std::string known;
  for (const OutcomeFacts& facts : AllOutcomes())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", facts.name);
  return UsageError(fmt::format("--outcome {}: give one of {}", name, known));
}

Result<int> List(const ArchiveListOptions& options) {
  ASSAY_RETURN_IF_ERROR(CheckOutcome(options.outcome));
  ASSAY_ASSIGN_OR_RETURN(const auto store, OpenArchive(options.archive));
  RecordQuery query;
  if (!options.kind.empty()) {
    query.kind = RecordKindFromName(options.kind);
    if (!query.kind)
      return UsageError(fmt::format(
          "--kind {}: give reference, candidate, verdict, failure, run, note, search, step, result "
          "steer or episode",
          options.kind));
  }
  query.problem = options.problem;
  query.outcome = options.outcome;
  query.limit = options.limit;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> records, store->Find(query));
  const CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  for (const Record& record : records) Print(ListLine(record, style.unicode));
  if (records.empty()) Notice("no such record");
  return kExitGood;
}

// The one record that the digits name.
Result<Record> FindOne(Store& store, const std::string& reference) {
  std::string digits = reference;
  std::transform(digits.begin(), digits.end(), digits.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (digits.size() < kDigitsMin ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return UsageError(fmt::format(
        "{}: give at least {} digits of a hash, as assay archive list prints it, or a verdict's id",
        reference, kDigitsMin));
  RecordQuery query;
  query.reference = digits;
  query.oldest_first = true;
  query.limit = 2;
  ASSAY_ASSIGN_OR_RETURN(std::vector<Record> found, store.Find(query));
  if (found.empty())
    return UsageError(fmt::format("no record has the hash or the id {}", reference));
  // All records of a search have its id: the first has its settings.
  if (found.size() > 1 && found[0].facts.id == digits) return std::move(found.front());
  if (found.size() > 1 && found[0].content != digits)
    return UsageError(
        fmt::format("several records begin with {}, such as {} and {}: give more "
                    "digits",
                    reference, found[0].hash.substr(0, 2 * kHashShown),
                    found[1].hash.substr(0, 2 * kHashShown)));
  return std::move(found.front());
}

std::string PrintableLines(const std::string& text, bool unicode) {
  std::string lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines += Printable(std::string_view(text).substr(at, end - at), unicode) + "\n";
    at = end + 1;
  }
  return lines;
}

Result<int> ShowTree(Store& store, const Record& record) {
  if (record.facts.kind != RecordKind::kSearch)
    return UsageError("--tree: name a search; assay archive list --kind search shows them");
  ASSAY_ASSIGN_OR_RETURN(const Journal journal, Journal::Open(store, record.facts.id));
  const CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  Print(PrintableLines(RenderTree(journal), style.unicode));
  return kExitGood;
}

Result<int> Show(const ArchiveShowOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const auto store, OpenArchive(options.archive));
  ASSAY_ASSIGN_OR_RETURN(const Record record, FindOne(*store, options.hash));
  if (options.tree) return ShowTree(*store, record);
  ASSAY_ASSIGN_OR_RETURN(const std::string content, store->Get(record.content));
  const CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  if (options.feedback) {
    ASSAY_ASSIGN_OR_RETURN(const std::string feedback, FeedbackOfRecord(record, *store));
    Print(PrintableLines(feedback, style.unicode));
    return kExitGood;
  }
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) Print(fmt::format("{:<9} {}\n", name, Printable(value, style.unicode)));
  };
  line("record",
       fmt::format("{}, {}, {}", record.sequence, RecordKindName(record.facts.kind), record.time));
  line("hash", record.hash);
  line("parent", record.parent);
  line("content", record.content);
  line("source", record.source);
  line("name", record.facts.name);
  line("problem", record.facts.problem);
  if (!record.terms.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const std::string terms, store->Get(record.terms));
    line("terms", terms);
  }
  Print("\n");
  if (record.facts.kind == RecordKind::kVerdict) {
    ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, VerdictFromJson(content));
    CardStyle plain = style;
    plain.saved = false;
    Print(RenderCard(verdict, plain));
  } else {
    Print(PrintableLines(content, style.unicode));
  }
  if (!record.source.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const std::string source, store->Get(record.source));
    Print("\n" + PrintableLines(source, style.unicode));
  }
  return kExitGood;
}

struct Version {
  Record record;
  std::string source;
  std::optional<Verdict> verdict;
};

Result<Version> ReadVersion(Store& store, const std::string& reference) {
  Version version;
  ASSAY_ASSIGN_OR_RETURN(version.record, FindOne(store, reference));
  const bool is_source = version.record.facts.kind == RecordKind::kCandidate;
  const std::string& hash = is_source ? version.record.content : version.record.source;
  if (hash.empty())
    return UsageError(
        fmt::format("{} has no candidate's source: name a candidate or a verdict", reference));
  ASSAY_ASSIGN_OR_RETURN(version.source, store.Get(hash));
  if (version.record.facts.kind != RecordKind::kVerdict) return version;
  ASSAY_ASSIGN_OR_RETURN(const std::string text, store.Get(version.record.content));
  ASSAY_ASSIGN_OR_RETURN(version.verdict, VerdictFromJson(text));
  return version;
}

std::string VersionLine(std::string_view mark, const Version& version) {
  const RecordFacts& facts = version.record.facts;
  return fmt::format("{} {}  {}  {}\n", mark, version.record.hash.substr(0, kHashShown),
                     facts.problem.empty() ? "-" : facts.problem,
                     version.verdict ? version.verdict->message : "a source without a verdict");
}

Result<int> Diff(const ArchiveDiffOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const auto store, OpenArchive(options.archive));
  ASSAY_ASSIGN_OR_RETURN(const Version before, ReadVersion(*store, options.before));
  ASSAY_ASSIGN_OR_RETURN(const Version after, ReadVersion(*store, options.after));
  const CardStyle style = CardStyleFor(DetectTerminal(STDOUT_FILENO));
  const std::string diff =
      UnifiedDiff(before.source, after.source, before.record.facts.name, after.record.facts.name);
  Print(PrintableLines(VersionLine("-", before) + VersionLine("+", after), style.unicode));
  Print(diff.empty() ? "\nthe same source\n" : "\n" + PrintableLines(diff, style.unicode));
  return kExitGood;
}

Result<int> Verify(const ArchiveVerifyOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const auto store, OpenArchive(options.archive));
  ASSAY_ASSIGN_OR_RETURN(const ChainReport report, VerifyChain(*store));
  for (const std::string& fault : report.faults) Print(fault + "\n");
  if (report.faults.size() >= kChainFaultsMax) Print("there may be more\n");
  if (!report.faults.empty()) return kExitWrong;
  Print(fmt::format("{}, whole; the last is {}\n", Counted(report.records, "record"), report.head));
  return kExitGood;
}

// Writes all records, oldest first.
Result<Written> WriteLines(Store& store, std::FILE* file, const std::string& path) {
  Written written;
  const auto leave_out = [&](int64_t sequence, const Error& error) {
    written.LeaveOut(fmt::format("record {} is left out: {}", sequence, error.message));
    return true;
  };
  ASSAY_RETURN_IF_ERROR(ForEachRecord(
      store,
      [&](const Record& record) {
        const auto line = RecordToJson(record, store);
        if (!line) return leave_out(record.sequence, line.error());
        ++written.records;
        std::fputs((*line + "\n").c_str(), file);
        return std::ferror(file) == 0;
      },
      leave_out));
  if (std::fflush(file) != 0 || std::ferror(file) != 0)
    return EnvironmentError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return written;
}

Result<int> Export(const ArchiveExportOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const auto store, OpenArchive(options.archive));
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file;
  const bool to_stdout = options.file == "-";
  if (!to_stdout) {
    std::error_code code;
    const std::string archive = options.archive.empty() ? DefaultArchive() : options.archive;
    for (const char* suffix : {"", "-wal", "-shm", ".lock"})
      if (std::filesystem::equivalent(options.file, archive + suffix, code))
        return UsageError(fmt::format(
            "{} is the archive itself, or belongs to it: name another file", options.file));
    file.reset(std::fopen(options.file.c_str(), "we"));
    if (!file)
      return UsageError(fmt::format("cannot write {}: {}", options.file, std::strerror(errno)));
  }
  std::FILE* const to = to_stdout ? stdout : file.get();
  ASSAY_ASSIGN_OR_RETURN(const Written written, options.as.empty()
                                                    ? WriteLines(*store, to, options.file)
                                                    : WriteDataset(*store, options, to));
  if (written.left_out > kLeftOutToldMax)
    Notice(fmt::format("{} are left out in all", Counted(written.left_out, "record")));
  if (written.records == 0 && written.left_out == 0 && !options.as.empty())
    Notice(fmt::format("nothing in the archive is of the kind {}: docs/datasets.md says what is",
                       options.as));
  if (!to_stdout)
    Notice(fmt::format("wrote {} to {}",
                       Counted(written.records, options.as.empty() ? "record" : "line"),
                       options.file));
  return written.left_out == 0 ? kExitGood : kExitWrong;
}

}  // namespace

void Written::LeaveOut(const std::string& what) {
  if (++left_out <= kLeftOutToldMax) Notice(what);
}

int RunArchiveVerify(const ArchiveVerifyOptions& options) { return Ended(Verify(options)); }
int RunArchiveList(const ArchiveListOptions& options) { return Ended(List(options)); }
int RunArchiveShow(const ArchiveShowOptions& options) { return Ended(Show(options)); }
int RunArchiveDiff(const ArchiveDiffOptions& options) { return Ended(Diff(options)); }
int RunArchiveExport(const ArchiveExportOptions& options) { return Ended(Export(options)); }

}  // namespace assay
