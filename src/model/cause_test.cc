#include "model/cause.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace assay {
namespace {

// Every code from the first to the last has a name of its own, and that name leads back to it.
template <typename Code>
void HaveNames(Code last, std::string_view (*name_of)(Code),
               std::optional<Code> (*from_name)(std::string_view)) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto code = static_cast<Code>(i);
    EXPECT_TRUE(names.insert(name_of(code)).second) << name_of(code);
    EXPECT_EQ(from_name(name_of(code)), code) << name_of(code);
  }
  EXPECT_EQ(from_name("no such name"), std::nullopt);
}

TEST(Cause, CodesHaveNames) {
  HaveNames(Cause::kScarceMemory, CauseName, CauseFromName);
  HaveNames(UnsettledCause::kUnseen, UnsettledCauseName, UnsettledCauseFromName);
  HaveNames(Mistake::kOther, MistakeName, MistakeFromName);
}

TEST(Cause, TheNamesOfUnusualValuesEndInAlone) {
  for (int i = 0; i <= static_cast<int>(Mistake::kOther); ++i) {
    const auto mistake = static_cast<Mistake>(i);
    EXPECT_EQ(IsOfUnusualValues(mistake), MistakeName(mistake).ends_with(" alone"));
  }
}

}  // namespace
}  // namespace assay
