#include "worklog/class_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "report/text.h"

namespace assay {
namespace {

constexpr int kFolderColumns = 32, kAuthorColumns = 20, kRemarkColumns = 72;
constexpr size_t kColumns = 4;

std::string AuthorOf(const ClassEntry& entry) {
  return entry.worklog == nullptr ? std::string() : entry.worklog->words.author;
}

std::string NameOf(const ClassEntry& entry) {
  const std::string author = AuthorOf(entry);
  return author.empty() ? entry.folder : fmt::format("{} ({})", entry.folder, author);
}

// The versions of `entry` whose source the author of `other` has, too.
std::vector<std::string> SharedSources(const ClassEntry& entry, const ClassEntry& other) {
  std::vector<std::string> shared;
  for (const VersionFact& version : entry.worklog->match.versions) {
    if (version.said.player == Player::kModel) continue;
    const auto& versions = other.worklog->match.versions;
    if (std::any_of(versions.begin(), versions.end(), [&](const VersionFact& each) {
          return each.said.player != Player::kModel &&
                 each.said.source_hash == version.said.source_hash;
        }))
      shared.push_back(version.said.version);
  }
  return shared;
}

std::string Joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts)
    text += fmt::format("{}{}", text.empty() ? "" : between, part);
  return text;
}

// The likeness of `entry` to `other`, in words; empty: none.
std::string AlikeText(const ClassEntry& entry, const ClassEntry& other) {
  if (entry.worklog->words.id == other.worklog->words.id)
    return fmt::format("the same worklog, by its id, as {}", NameOf(other));
  const std::string author = AuthorOf(entry);
  if (!author.empty() && author == AuthorOf(other)) return {};
  const std::vector<std::string> shared = SharedSources(entry, other);
  if (shared.empty()) return {};
  return fmt::format("the source{} of {} {} also in {}", shared.size() == 1 ? "" : "s",
                     Joined(shared, ", "), shared.size() == 1 ? "is" : "are", NameOf(other));
}

std::string Padded(const std::string& text, int width) {
  return text + Repeated(" ", std::max(0, width - DisplayWidth(text)));
}

const Grade* FirstGrade(std::span<const ClassEntry> entries) {
  for (const ClassEntry& entry : entries)
    if (entry.grade != nullptr) return entry.grade;
  return nullptr;
}

std::string Summary(std::span<const ClassEntry> entries) {
  long long trouble = 0, suspicious = 0, alike = 0, unmarked = 0;
  for (const ClassEntry& entry : entries) {
    alike += !entry.alike.empty();
    if (entry.grade == nullptr) {
      ++trouble;
      continue;
    }
    suspicious += !entry.grade->open.empty();
    const auto& buckets = entry.grade->buckets;
    unmarked += std::any_of(buckets.begin(), buckets.end(),
                            [](const GradedBucket& bucket) { return !bucket.marked; });
  }
  return fmt::format("{}: {} not graded, {} suspicious, {} alike, {} not fully marked\n",
                     Counted(static_cast<long long>(entries.size()), "worklog"), trouble,
                     suspicious, alike, unmarked);
}

}  // namespace

void SetOtherRubricsApart(std::span<ClassEntry> entries) {
  std::map<std::string, int> counts;
  for (const ClassEntry& entry : entries)
    if (entry.grade != nullptr) ++counts[GradeCsvHeader(*entry.grade)];
  std::string most;
  for (const ClassEntry& entry : entries) {
    if (entry.grade == nullptr) continue;
    const std::string header = GradeCsvHeader(*entry.grade);
    if (most.empty() || counts[header] > counts[most]) most = header;
  }
  for (ClassEntry& entry : entries) {
    if (entry.grade == nullptr || GradeCsvHeader(*entry.grade) == most) continue;
    entry.grade = nullptr;
    entry.trouble =
        "its rubric.toml has other buckets than the rubric of the others: name one for all by "
        "--rubric FILE";
  }
}

void FindAlike(std::span<ClassEntry> entries) {
  for (ClassEntry& entry : entries) {
    if (entry.worklog == nullptr) continue;
    for (const ClassEntry& other : entries) {
      if (&other == &entry || other.worklog == nullptr) continue;
      if (std::string text = AlikeText(entry, other); !text.empty())
        entry.alike.push_back(std::move(text));
    }
  }
}

std::string ClassRemarks(const ClassEntry& entry) {
  std::vector<std::string> parts;
  if (!entry.trouble.empty()) parts.push_back("not graded: " + entry.trouble);
  parts.insert(parts.end(), entry.alike.begin(), entry.alike.end());
  if (entry.grade != nullptr) {
    for (const std::string& each : entry.grade->open) parts.push_back("suspicious: " + each);
    if (!entry.grade->lift.empty()) parts.push_back(entry.grade->lift);
    if (entry.grade->stale) parts.push_back("facts were added since the marks were given");
  }
  return Printable(Joined(parts, "; "), true);
}

std::string ClassTable(std::span<const ClassEntry> entries) {
  std::vector<std::array<std::string, kColumns>> rows = {
      {"folder", "author", "marks", "to look at"}};
  for (const ClassEntry& entry : entries)
    rows.push_back(
        {Shortened(Printable(entry.folder, true), kFolderColumns, true),
         Shortened(Printable(AuthorOf(entry), true), kAuthorColumns, true),
         entry.grade == nullptr ? "not graded" : Printable(TotalText(*entry.grade), true),
         Shortened(ClassRemarks(entry), kRemarkColumns, true)});
  std::array<int, kColumns> widths{};
  for (const auto& row : rows)
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) line += Padded(row[i], widths[i]) + "  ";
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + Summary(entries);
}

std::string ClassCsv(std::span<const ClassEntry> entries) {
  const Grade none;
  const Grade* const first = FirstGrade(entries);
  const size_t buckets = first == nullptr ? 0 : first->buckets.size();
  const auto line = [](std::string start, const std::string& end) {
    start.pop_back();  // its line break
    return start + end + "\n";
  };
  std::string csv = line(GradeCsvHeader(first == nullptr ? none : *first), ",mentor,note,remarks");
  for (const ClassEntry& entry : entries) {
    std::string start;
    if (entry.grade != nullptr) {
      start = GradeCsvLine(*entry.grade, *entry.worklog, entry.folder);
    } else {
      const Words words = entry.worklog == nullptr ? Words() : entry.worklog->words;
      start = fmt::format("{},{},{},{}", CsvCell(entry.folder), CsvCell(words.id),
                          CsvCell(words.author), CsvCell(words.problem));
      for (size_t i = 0; i < buckets; ++i) start += ",not graded,";
      start += ",not graded,,,\n";
    }
    csv += line(start, fmt::format(",{},{},{}", CsvCell(entry.mentor), CsvCell(entry.note),
                                   CsvCell(ClassRemarks(entry))));
  }
  return csv;
}

}  // namespace assay
