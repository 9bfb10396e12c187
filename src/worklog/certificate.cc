#include "worklog/certificate.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/hash.h"
#include "report/text.h"
#include "worklog/facts_text.h"
#include "worklog/markdown.h"

namespace assay {
namespace {

constexpr int kNameColumns = 60;

std::string Name(const std::string& text) {
  return Shortened(Printable(text, true), kNameColumns, true);
}

CertificateSide SideOf(const Match& match, Player player) {
  const VersionFact* best = match.Best(player);
  const std::string count = Counted(static_cast<long long>(match.Of(player).size()), "version");
  CertificateSide side{std::string(PlayerTitle(player)), "none",
                       count + ", none correct with a speed"};
  if (best == nullptr) return side;
  const VersionRow row = RowOf(*best);
  side.best = row.speedup;
  side.note = fmt::format("{} of {}; {}", row.name, count, row.interval);
  return side;
}

}  // namespace

std::string WorklogHash(const Worklog& worklog) { return Sha256Hex(RenderMarkdown(worklog)); }

CertificateSheet SheetOf(const Worklog& worklog, const Grade& grade, const std::string& mentor) {
  const Match& match = worklog.match;
  const Words& words = worklog.words;
  CertificateSheet sheet;
  sheet.author = Name(words.author);
  sheet.subject =
      fmt::format("predicted, measured and explained a match on {}{}", Name(words.problem),
                  words.size.empty() ? "" : ", size " + Name(words.size));
  sheet.tier = TierText(words.tier);
  sheet.hand = SideOf(match, Player::kHand);
  sheet.model = SideOf(match, Player::kModel);
  sheet.race = RaceText(match, Player::kHand, Player::kModel);
  if (!mentor.empty())
    sheet.marks = fmt::format("{:g} of {:g} points for the worklog, marked by {}", grade.mark,
                              grade.points, Name(mentor));
  if (!grade.lift.empty())
    sheet.marks += fmt::format("{}what looked suspicious was {}", sheet.marks.empty() ? "" : "; ",
                               Name(grade.lift));
  sheet.created = match.versions.empty() ? match.place.time : match.versions.back().place.time;
  sheet.worklog =
      fmt::format("worklog {}, {}; SHA-256 of worklog.md:", Name(words.id), sheet.created);
  sheet.hash = WorklogHash(worklog);
  sheet.title = "Certificate of the worklog " + Name(words.id);
  return sheet;
}

Result<std::string> DrawCertificate(const CertificateSheet& sheet, const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const draw = handle == nullptr ? nullptr : ::dlsym(handle, "AssayDrawCertificate");
  if (draw == nullptr) {
    const char* why = ::dlerror();
    return EnvironmentError(
        fmt::format("certificates need cairo and pango (Debian: libpangocairo-1.0-0): {}",
                    why != nullptr ? why : library));
  }
  std::string pdf;
  if (!reinterpret_cast<DrawCertificateFunction>(draw)(sheet, &pdf))
    return EnvironmentError("the certificate cannot be drawn: cairo reports an error");
  return pdf;
}

}  // namespace assay
