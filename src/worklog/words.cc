#include "worklog/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/toml.h"
#include "base/utf8.h"
#include "problem/nearest.h"
#include "worklog/fact.h"

namespace assay {
namespace {

struct SectionFacts {
  std::string_view title, file, stub;
};

constexpr std::array<SectionFacts, 5> kSections = {{
    {"The problem and the plan", "plan.md",
     "What will limit the kernel, and how will you get around it? Write it before you measure."},
    {"The attempt by hand", "by-hand.md",
     "Anything that the whys of the versions leave out. May stay empty."},
    {"The model's attempt", "model.md",
     "What the model tried, in your words: did it compile, did the numbers match? May stay empty."},
    {"Head to head", "head-to-head.md",
     "The heart of the worklog: explain the gap, in either direction, by mechanism and with a "
     "number."},
    {"What each got stuck on", "stuck.md",
     "assay worklog stuck adds a line for each side. More words may stand here."},
}};

// A TOML string: as it was typed, over several lines where it has them.
std::string Quoted(std::string_view text) {
  const bool lines = text.find('\n') != std::string_view::npos;
  std::string quoted = lines ? "\"\"\"\n" : "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\')
      quoted += fmt::format("\\{}", letter);
    else if (letter == '\n' || (letter == '\t' && lines))
      quoted += letter;
    else if (byte < 0x20 || byte == 0x7f)
      quoted += fmt::format("\\u{:04X}", byte);
    else
      quoted += letter;
  }
  return quoted + (lines ? "\"\"\"" : "\"");
}

// Reads tables strictly. The first fault is kept.
class WordsReader {
 public:
  explicit WordsReader(const std::string& path) : path_(path) {}
  const std::string& fault() const { return fault_; }

  void Fault(const toml::source_region& region, const std::string& remedy) {
    if (fault_.empty()) fault_ = fmt::format("{} line {}: {}", path_, region.begin.line, remedy);
  }

  void RefuseOthers(const toml::table& table, const std::vector<std::string>& known) {
    for (const auto& [key, value] : table)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        Fault(key.source(),
              fmt::format("no such key: {}{}", key.str(), Suggestion(key.str(), known)));
  }

  std::string Text(const toml::table& table, std::string_view key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return Fault(table.source(), fmt::format("{} is missing", key)), "";
    if (!node->is_string()) Fault(node->source(), fmt::format("{} is a string", key));
    return node->value_or(std::string());
  }

  double Number(const toml::table& table, std::string_view key) {
    const toml::node* node = table.get(key);
    if (node == nullptr || !node->is_number())
      Fault(node != nullptr ? node->source() : table.source(),
            fmt::format("{} is missing, or no number", key));
    return node != nullptr ? node->value_or(0.0) : 0.0;
  }

  // The tables of [[key]]; none: it is not there.
  std::vector<const toml::table*> Tables(const toml::table& table, std::string_view key) {
    std::vector<const toml::table*> tables;
    const toml::node* node = table.get(key);
    if (node == nullptr) return tables;
    const toml::array* array = node->as_array();
    if (array == nullptr) return Fault(node->source(), fmt::format("write [[{}]]", key)), tables;
    for (const toml::node& element : *array) {
      if (const toml::table* each = element.as_table())
        tables.push_back(each);
      else
        Fault(element.source(), fmt::format("write [[{}]]", key));
    }
    return tables;
  }

  Words Read(const toml::table& table) {
    RefuseOthers(table, {"schema", "id", "author", "problem", "size", "tier", "prediction",
                         "version", "stuck", "claim"});
    if (Text(table, "schema") != "assay.worklog/1")
      Fault(table.source(), "schema is assay.worklog/1: this is no worklog, or a newer one");
    Words words;
    words.id = Text(table, "id");
    words.author = Text(table, "author");
    words.problem = Text(table, "problem");
    words.size = Text(table, "size");
    words.tier = static_cast<int>(Number(table, "tier"));
    for (const toml::table* each : Tables(table, "prediction")) {
      RefuseOthers(*each, {"fact", "regime", "ratio", "reason"});
      words.predictions.push_back({Text(*each, "fact"), Text(*each, "regime"),
                                   Text(*each, "reason"), Number(*each, "ratio")});
    }
    for (const toml::table* each : Tables(table, "version")) {
      RefuseOthers(*each, {"name", "file", "fact", "why"});
      words.versions.push_back(
          {Text(*each, "name"), Text(*each, "file"), Text(*each, "fact"), Text(*each, "why")});
    }
    for (const toml::table* each : Tables(table, "stuck")) ReadStuck(*each, &words);
    for (const toml::table* each : Tables(table, "claim")) ReadClaim(*each, &words);
    return words;
  }

 private:
  void ReadStuck(const toml::table& table, Words* words) {
    RefuseOthers(table, {"player", "text"});
    const auto player = PlayerFromName(Text(table, "player"));
    if (!player) Fault(table.source(), "player is hand, model or together");
    words->stuck.push_back({player.value_or(Player::kHand), Text(table, "text")});
  }

  void ReadClaim(const toml::table& table, Words* words) {
    RefuseOthers(table, {"version", "mechanism", "text"});
    const auto mechanism = MechanismFromName(Text(table, "mechanism"));
    if (!mechanism) Fault(table.source(), fmt::format("mechanism is one of {}", MechanismNames()));
    words->claims.push_back(
        {Text(table, "version"), mechanism.value_or(Mechanism::kFusion), Text(table, "text")});
  }

  const std::string path_;
  std::string fault_;
};

}  // namespace

std::string_view SectionTitle(Section section) {
  return kSections[static_cast<size_t>(section)].title;
}
std::string_view SectionFile(Section section) {
  return kSections[static_cast<size_t>(section)].file;
}
std::string SectionStub(Section section) {
  return fmt::format("<!-- {} -->\n", kSections[static_cast<size_t>(section)].stub);
}

std::string SectionProse(std::string_view text) {
  std::string prose;
  while (!text.empty()) {
    const size_t begin = text.find("<!--");
    prose += text.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const size_t end = text.find("-->", begin);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 3);
  }
  const size_t first = prose.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return prose.substr(first, prose.find_last_not_of(" \t\r\n") + 1 - first);
}

size_t WordCount(std::string_view text) {
  size_t count = 0;
  bool inside = false;
  for (const char letter : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(letter)) != 0;
    if (!blank && !inside) ++count;
    inside = !blank;
  }
  return count;
}

const VersionWords* Words::Find(std::string_view version) const {
  for (const VersionWords& each : versions)
    if (each.name == version) return &each;
  return nullptr;
}

std::vector<const ClaimWords*> Words::ClaimsOf(std::string_view version) const {
  std::vector<const ClaimWords*> found;
  for (const ClaimWords& claim : claims) {
    if (claim.version != version) continue;
    const auto same = std::find_if(found.begin(), found.end(), [&](const ClaimWords* each) {
      return each->mechanism == claim.mechanism;
    });
    if (same == found.end())
      found.push_back(&claim);
    else
      *same = &claim;
  }
  return found;
}

std::vector<const StuckWords*> Words::StuckOf(Player player) const {
  std::vector<const StuckWords*> found;
  for (const StuckWords& each : stuck)
    if (each.player == player) found.push_back(&each);
  return found;
}

Result<Words> ParseWords(std::string_view text, const std::string& path) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return UsageError(fmt::format(
        "{} is empty: bring it back from git, or begin another by assay worklog init", path));
  if (const size_t line = ConflictLine(text); line > 0)
    return UsageError(fmt::format(
        "{} line {}: a merge left a conflict. The tool only adds to this file, so keep the tables "
        "of both sides, and remove the marks",
        path, line));
  if (!IsUtf8(text)) return UsageError(fmt::format("{} is not UTF-8: save it as UTF-8", path));
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, path));
  WordsReader reader(path);
  Words words = reader.Read(table);
  if (!reader.fault().empty()) return UsageError(reader.fault());
  return words;
}

std::string WordsHead(const Words& words) {
  return fmt::format(
      "# The words of a match against a machine (docs/worklog.md). assay worklog adds tables at "
      "the end.\n# Whys, claims and what stuck may be reworded; facts are in facts.jsonl, and "
      "assay worklog check\n# compares.\nschema = \"assay.worklog/1\"\nid = {}\nauthor = {}\n"
      "problem = {}\nsize = {}\ntier = {}\n",
      Quoted(words.id), Quoted(words.author), Quoted(words.problem), Quoted(words.size),
      words.tier);
}

std::string WordsOf(const PredictionWords& prediction) {
  return fmt::format("\n[[prediction]]\nfact = {}\nregime = {}\nratio = {}\nreason = {}\n",
                     Quoted(prediction.fact), Quoted(prediction.regime), prediction.ratio,
                     Quoted(prediction.reason));
}

std::string WordsOf(const VersionWords& version) {
  return fmt::format("\n[[version]]\nname = {}\nfile = {}\nfact = {}\nwhy = {}\n",
                     Quoted(version.name), Quoted(version.file), Quoted(version.fact),
                     Quoted(version.why));
}

std::string WordsOf(const StuckWords& stuck) {
  return fmt::format("\n[[stuck]]\nplayer = {}\ntext = {}\n", Quoted(PlayerName(stuck.player)),
                     Quoted(stuck.text));
}

std::string WordsOf(const ClaimWords& claim) {
  return fmt::format("\n[[claim]]\nversion = {}\nmechanism = {}\ntext = {}\n",
                     Quoted(claim.version), Quoted(FactsOf(claim.mechanism).name),
                     Quoted(claim.text));
}

}  // namespace assay
