// The author's words: worklog.toml, to which the tool only adds, and a Markdown file a section.
// Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "worklog/event.h"
#include "worklog/mechanism.h"

namespace assay {

// The five sections of a worklog, in their order.
enum class Section { kPlan, kByHand, kModel, kHeadToHead, kStuck };
inline constexpr std::array<Section, 5> kAllSections = {
    Section::kPlan, Section::kByHand, Section::kModel, Section::kHeadToHead, Section::kStuck};
std::string_view SectionTitle(Section section);
std::string_view SectionFile(Section section);  // "plan.md"
// The file's first content: a comment that says what belongs there.
std::string SectionStub(Section section);
// The prose without comments and blanks around it; empty: nothing was written yet.
std::string SectionProse(std::string_view text);
size_t WordCount(std::string_view text);

struct PredictionWords {
  std::string fact;  // hash of its record
  std::string regime, reason;
  double ratio = 0;
};

struct VersionWords {
  std::string name, file, fact, why;
};

struct StuckWords {
  Player player = Player::kHand;
  std::string text;
};

// A mechanism that the author says makes a version what it is.
struct ClaimWords {
  std::string version;
  Mechanism mechanism = Mechanism::kFusion;
  std::string text;
};

struct Words {
  std::string id, author, problem, size;
  int tier = 2;
  std::vector<PredictionWords> predictions;
  std::vector<VersionWords> versions;
  std::vector<StuckWords> stuck;
  std::vector<ClaimWords> claims;
  std::array<std::string, kAllSections.size()> prose;  // by section; not in worklog.toml

  const std::string& Prose(Section section) const { return prose[static_cast<size_t>(section)]; }
  const VersionWords* Find(std::string_view version) const;
  // In their order; of one mechanism the last.
  std::vector<const ClaimWords*> ClaimsOf(std::string_view version) const;
  std::vector<const StuckWords*> StuckOf(Player player) const;
};

// Errors (kUsage) name `path`, the line and the remedy.
Result<Words> ParseWords(std::string_view text, const std::string& path);

// Lines that the tool adds to worklog.toml.
std::string WordsHead(const Words& words);
std::string WordsOf(const PredictionWords& prediction);
std::string WordsOf(const VersionWords& version);
std::string WordsOf(const StuckWords& stuck);
std::string WordsOf(const ClaimWords& claim);

}  // namespace assay
