#include "model/older_words.h"

#include <array>
#include <charconv>

namespace assay {
namespace {

struct Phrase {
  std::string_view in_hint;
  Mistake mistake;
};

// The first that a hint holds tells its mistake.
constexpr std::array kUnusual{
    Phrase{"large offsets", Mistake::kLargeOffsets},
    Phrase{"magnitudes span", Mistake::kWideRange},
    Phrase{"tiny values", Mistake::kTinyValues},
    Phrase{"huge values", Mistake::kHugeValues},
    Phrase{"zeros of both signs", Mistake::kSignedZeros},
    Phrase{"values are equal", Mistake::kTies},
    Phrase{"small integers", Mistake::kSmallIntegers},
    Phrase{"inputs of 0 and 1", Mistake::kZerosAndOnes},
    Phrase{"one large value", Mistake::kOutliers},
    Phrase{"NaN or infinity", Mistake::kSpecialValues},
    Phrase{"values have both signs", Mistake::kBothSigns},
};
constexpr std::array kPatterns{
    Phrase{"right at the size that was asked for", Mistake::kOtherSize},
    Phrase{"it wrote", Mistake::kStrayWrite},
    Phrase{"differs from run to run", Mistake::kRunToRun},
    Phrase{"the first call was right", Mistake::kLaterCall},
    Phrase{"never written", Mistake::kNotWritten},
    Phrase{"copied through", Mistake::kCopiedInput},
    Phrase{"it leaves", Mistake::kInputStays},
    Phrase{"all NaN", Mistake::kNanOrInfinity},
    Phrase{"NaN where they should not", Mistake::kNanOrInfinity},
    Phrase{"infinite where they should not", Mistake::kNanOrInfinity},
    Phrase{"where NaN or an infinity belongs", Mistake::kNanOrInfinity},
    Phrase{"all zeros", Mistake::kOneValue},
    Phrase{"the same value everywhere", Mistake::kOneValue},
    Phrase{"zero where they should not", Mistake::kZeros},
    Phrase{"shifted by one", Mistake::kMisplaced},
    Phrase{"transposed", Mistake::kMisplaced},
    Phrase{"every ", Mistake::kPart},
    Phrase{"only ", Mistake::kPart},
    Phrase{"sign is flipped", Mistake::kFactor},
    Phrase{"off by a factor", Mistake::kFactor},
    Phrase{"off by a constant", Mistake::kFactor},
    Phrase{"errors are as large as", Mistake::kPrecision},
    Phrase{"accuracy of the true values", Mistake::kPrecision},
    Phrase{"larger than this precision explains", Mistake::kPrecision},
    Phrase{"scattered elements", Mistake::kScattered},
    Phrase{" indices ", Mistake::kIndices},
    Phrase{"selects", Mistake::kIndices},
};

template <size_t N>
Mistake MistakeIn(std::string_view hint, const std::array<Phrase, N>& phrases, Mistake otherwise) {
  for (const Phrase& phrase : phrases)
    if (hint.contains(phrase.in_hint)) return phrase.mistake;
  return otherwise;
}

}  // namespace

Mistake MistakeByOlderWords(std::string_view hint) {
  if (hint.empty()) return Mistake::kNone;
  if (hint.starts_with("right on ordinary values"))
    return MistakeIn(hint, kUnusual, Mistake::kUnusualValues);
  return MistakeIn(hint, kPatterns, Mistake::kOther);
}

bool ForTimeByOlderWords(std::string_view reason) {
  return reason.starts_with("left out for the time");
}

bool DisturbedByOlderWords(std::string_view note) { return note.contains("other processes"); }

bool WeakByOlderWords(std::string_view isolation) { return isolation.starts_with("WEAK"); }

Cause CauseByOlderWords(const Verdict& verdict) {
  if (verdict.outcome != Outcome::kUnsettled || verdict.speed) return Cause::kNone;
  return verdict.message.contains("--budget") ? Cause::kLongCalls : Cause::kBlindProblem;
}

int LineByOlderWords(const Verdict& verdict) {
  constexpr std::string_view kLine = "line ";
  if (verdict.outcome != Outcome::kBuildFailed) return 0;
  const std::string_view message = verdict.message;
  for (size_t at = message.find(kLine); at != std::string_view::npos;
       at = message.find(kLine, at + 1)) {
    const std::string_view rest = message.substr(at + kLine.size());
    int line = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), line);
    if (line > 0) return line;
  }
  return 0;
}

}  // namespace assay
