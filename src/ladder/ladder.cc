// Reads ladder*.toml strictly: a key that means nothing is a mistake to be told, not to be skipped.
#include "ladder/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>

#include "base/files.h"
#include "base/toml.h"
#include "model/verdict.h"
#include "problem/nearest.h"
#include "problem/suite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLadderBytesMax = 1 << 20;
constexpr int kDepthMax = 4;  // of folders in folders
constexpr size_t kLaddersMax = 1000;

// The number that "01_naive.cpp" begins with; nullopt where it begins with none.
std::optional<int> NumberOf(std::string_view file) {
  int number = 0;
  const auto [end, status] = std::from_chars(file.data(), file.data() + file.size(), number);
  if (status != std::errc() || number < 0 || end == file.data() + file.size() || *end != '_')
    return std::nullopt;
  return number;
}

// Takes values out of one file's tables. The first fault is kept; later calls give empty values.
class LadderReader {
 public:
  explicit LadderReader(std::string path) : path_(std::move(path)) {}

  const std::string& fault() const { return fault_; }

  void Fault(const toml::source_region& region, std::string_view key, const std::string& remedy) {
    if (fault_.empty())
      fault_ = fmt::format("{} line {}: {}: {}", path_, region.begin.line, key, remedy);
  }

  void RefuseOthers(const toml::table& table, const std::vector<std::string>& known) {
    for (const auto& [key, value] : table)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        Fault(key.source(), key.str(), fmt::format("no such key{}", Suggestion(key.str(), known)));
  }

  std::string Text(const toml::table& table, std::string_view key, const std::string& remedy,
                   bool required = true) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (required) Fault(table.source(), key, "is missing: " + remedy);
      return {};
    }
    const auto* text = node->as_string();
    if (text == nullptr || text->get().empty()) {
      Fault(node->source(), key, remedy);
      return {};
    }
    return text->get();
  }

  std::string OneOf(const toml::table& table, std::string_view key,
                    const std::vector<std::string>& known) {
    const std::string remedy = fmt::format("write \"{}\" or \"{}\"", known[0], known[1]);
    const std::string text = Text(table, key, remedy);
    if (!text.empty() && std::find(known.begin(), known.end(), text) == known.end())
      Fault(table.get(key)->source(), key, remedy);
    return text;
  }

  std::vector<std::string> Texts(const toml::table& table, std::string_view key,
                                 const std::string& remedy) {
    std::vector<std::string> texts;
    const toml::node* node = table.get(key);
    if (node == nullptr) return texts;
    const auto* array = node->as_array();
    if (array == nullptr) return Fault(node->source(), key, remedy), texts;
    for (const toml::node& element : *array) {
      if (!element.is_string()) Fault(element.source(), key, remedy);
      texts.push_back(element.value_or(std::string()));
    }
    return texts;
  }

  // The tables of [[key]], at least one.
  std::vector<const toml::table*> Tables(const toml::table& table, std::string_view key) {
    std::vector<const toml::table*> tables;
    const toml::node* node = table.get(key);
    const toml::array* array = node != nullptr ? node->as_array() : nullptr;
    if (array == nullptr || array->empty() || !array->is_homogeneous<toml::table>()) {
      Fault(node != nullptr ? node->source() : table.source(), key,
            fmt::format("write at least one [[{}]]", key));
      return tables;
    }
    for (const toml::node& element : *array) tables.push_back(element.as_table());
    return tables;
  }

  LadderSize Size(const toml::table& table) {
    constexpr const char* kRemedy = "write constants of the problem, as set = {ROWS = 1024}";
    RefuseOthers(table, {"set"});
    const toml::node* node = table.get("set");
    const toml::table* set = node != nullptr ? node->as_table() : nullptr;
    if (set == nullptr || set->empty()) {
      Fault(node != nullptr ? node->source() : table.source(), "set", kRemedy);
      return {};
    }
    // The library sorts keys by name; the file's own order is what people read.
    std::vector<std::pair<toml::source_position, std::pair<std::string, std::string>>> found;
    for (const auto& [key, value] : *set) {
      std::string text;
      if (const auto* whole = value.as_integer()) text = fmt::format("{}", whole->get());
      if (const auto* number = value.as_floating_point()) text = fmt::format("{}", number->get());
      if (text.empty()) Fault(value.source(), key.str(), "a constant of a size is a number");
      found.push_back({key.source().begin, {std::string(key.str()), text}});
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    LadderSize size;
    for (auto& [where, setting] : found) size.push_back(std::move(setting));
    return size;
  }

  Rung OneRung(const toml::table& table) {
    RefuseOthers(table, {"file", "idea", "predicted_percent_of_library"});
    Rung rung;
    constexpr const char* kFile = "write a file of this folder, as \"01_naive.cpp\"";
    rung.file = Text(table, "file", kFile);
    const auto number = NumberOf(rung.file);
    if (!rung.file.empty() && (!number || rung.file.contains('/')))
      Fault(table.get("file")->source(), "file", kFile);
    rung.number = number.value_or(0);
    rung.idea = Text(table, "idea", "write in a phrase what is new in this rung");
    constexpr std::string_view kPrediction = "predicted_percent_of_library";
    const toml::node* node = table.get(kPrediction);
    const auto percent = node != nullptr ? node->value<double>() : std::nullopt;
    if (!percent || !std::isfinite(*percent) || *percent < 0)
      Fault(node != nullptr ? node->source() : table.source(), kPrediction,
            "write a number from 0 on, before the rung is measured");
    rung.predicted_percent = percent.value_or(0);
    return rung;
  }

  Ladder Whole(const toml::table& table) {
    RefuseOthers(table, {"title", "problem", "device", "precision", "baseline", "also_against",
                         "bound", "results", "size", "rung"});
    Ladder ladder;
    ladder.title = Text(table, "title", "write what this ladder climbs");
    ladder.problem = Text(table, "problem", "write a problem's name, or a file of this folder");
    ladder.device = OneOf(table, "device", {"cpu", "cuda"});
    ladder.bound = OneOf(table, "bound", {"memory", "compute"});
    ladder.precision = Text(table, "precision", "write a class, as \"float32\"", false);
    const std::string baseline = Text(table, "baseline", "write \"eager\" or \"compiled\"", false);
    if (!baseline.empty()) ladder.baseline = baseline;
    ladder.also_against =
        Texts(table, "also_against", "write a list of baselines, as [\"compiled\"]");
    if (std::find(ladder.also_against.begin(), ladder.also_against.end(), kBestBaseline) !=
        ladder.also_against.end())
      Fault(
          table.get("also_against")->source(), "also_against",
          "write \"best\" as baseline: it measures all baselines, and also_against names columns");
    ladder.results = Text(table, "results", "write the path of a .jsonl file", false);
    for (const toml::table* size : Tables(table, "size")) ladder.sizes.push_back(Size(*size));
    for (const toml::table* rung : Tables(table, "rung")) {
      ladder.rungs.push_back(OneRung(*rung));
      const auto same = [&](const Rung& other) { return other.file == ladder.rungs.back().file; };
      if (std::count_if(ladder.rungs.begin(), ladder.rungs.end(), same) > 1)
        Fault(rung->source(), "file", "two rungs are one file: remove one");
    }
    return ladder;
  }

 private:
  std::string path_;
  std::string fault_;
};

// The files of FindLadders, sorted: their order must not depend on the file system.
Result<std::vector<std::string>> LadderFiles(const std::string& path) {
  std::error_code code;
  if (fs::is_regular_file(path, code)) return std::vector{path};
  if (!fs::is_directory(path, code))
    return UsageError(fmt::format("there is no {}: name a folder with a ladder.toml", path));
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator entry(path, code), end; !code && entry != end;
       entry.increment(code)) {
    if (entry.depth() >= kDepthMax) entry.disable_recursion_pending();
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (name.starts_with("ladder") && name.ends_with(".toml") && entry->is_regular_file(unknown))
      files.push_back(entry->path().string());
    if (files.size() > kLaddersMax)
      return UsageError(fmt::format("{} has more than {} ladders", path, kLaddersMax));
  }
  if (code) return UsageError(fmt::format("cannot list {}: {}", path, code.message()));
  if (files.empty())
    return UsageError(
        fmt::format("{} has no ladder.toml: docs/ladder.md says how one is written", path));
  std::sort(files.begin(), files.end());
  return files;
}

// Of "3", "5:8", ":4" and "7:".
struct Range {
  int first = 0, last = std::numeric_limits<int>::max();
};

std::optional<int> WholeNumber(std::string_view text) {
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<Range> ParseRange(std::string_view text) {
  Range range;
  const size_t colon = text.find(':');
  const std::string_view first = text.substr(0, colon);
  const std::string_view last = colon == std::string_view::npos ? first : text.substr(colon + 1);
  if (first.empty() && colon == std::string_view::npos) return std::nullopt;
  if (!first.empty()) {
    const auto number = WholeNumber(first);
    if (!number) return std::nullopt;
    range.first = *number;
  }
  if (!last.empty()) {
    const auto number = WholeNumber(last);
    if (!number) return std::nullopt;
    range.last = *number;
  }
  return range;
}

}  // namespace

std::string Rung::Stem() const { return file.substr(0, file.find('.')); }

std::string Rung::UnnumberedFile() const { return file.substr(file.find('_') + 1); }

std::vector<std::string> Ladder::Baselines() const {
  std::vector<std::string> baselines{baseline};
  for (const std::string& other : also_against)
    if (std::find(baselines.begin(), baselines.end(), other) == baselines.end())
      baselines.push_back(other);
  return baselines;
}

Result<Ladder> ParseLadder(std::string_view text, const std::string& folder,
                           const std::string& file) {
  const std::string path = folder + "/" + file;
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, path));
  LadderReader reader(path);
  Ladder ladder = reader.Whole(table);
  if (!reader.fault().empty()) return UsageError(reader.fault());
  ladder.folder = folder;
  ladder.file = file;
  std::error_code unknown;
  const fs::path whole = fs::weakly_canonical(folder, unknown);
  ladder.name = (unknown ? fs::path(folder) : whole).filename().string();
  return ladder;
}

Result<Ladder> ReadLadder(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLadderBytesMax));
  fs::path folder = fs::path(path).lexically_normal().parent_path();
  if (folder.empty()) folder = ".";
  ASSAY_ASSIGN_OR_RETURN(Ladder ladder,
                         ParseLadder(text, folder.string(), fs::path(path).filename().string()));
  std::error_code unknown;
  for (const Rung& rung : ladder.rungs)
    if (!fs::is_regular_file(folder / rung.file, unknown))
      return UsageError(fmt::format("{}: file: there is no {}: write it, or remove the rung",
                                    ladder.Path(), (folder / rung.file).string()));
  return ladder;
}

Result<std::vector<Ladder>> FindLadders(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<std::string> files, LadderFiles(path));
  std::vector<Ladder> ladders;
  for (const std::string& file : files) {
    ASSAY_ASSIGN_OR_RETURN(Ladder ladder, ReadLadder(file));
    ladders.push_back(std::move(ladder));
  }
  return ladders;
}

Result<LadderSize> WithSettings(LadderSize size, const std::vector<std::string>& settings) {
  for (const std::string& text : settings) {
    ASSAY_ASSIGN_OR_RETURN(const auto setting, ParseSetting(text));
    const auto found = std::find_if(size.begin(), size.end(), [&](const auto& constant) {
      return constant.first == setting.first;
    });
    if (found != size.end())
      found->second = setting.second;
    else
      size.push_back(setting);
  }
  return size;
}

std::string DescribeSize(const LadderSize& size) {
  std::string text;
  for (const auto& [name, value] : size)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

Result<std::vector<Rung>> ChooseRungs(const Ladder& ladder, const std::string& only) {
  if (only.empty()) return ladder.rungs;
  std::vector<Range> ranges;
  std::istringstream stream(only);
  for (std::string part; std::getline(stream, part, ',');) {
    const auto range = ParseRange(part);
    if (!range)
      return UsageError(
          fmt::format("--only {}: give numbers of rungs and ranges, as in 03,05:08", only));
    ranges.push_back(*range);
  }
  std::vector<Rung> chosen;
  for (const Rung& rung : ladder.rungs)
    if (std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
          return range.first <= rung.number && rung.number <= range.last;
        }))
      chosen.push_back(rung);
  if (chosen.empty())
    return UsageError(fmt::format("--only {}: {} has no such rung: its numbers are {} to {}", only,
                                  ladder.Path(), ladder.rungs.front().number,
                                  ladder.rungs.back().number));
  return chosen;
}

}  // namespace assay
