#include "serve/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive/sqlite_store.h"
#include "base/files.h"

namespace assay {
namespace {

using testing::HasSubstr;

ExampleFolders Folders() {
  return {std::string(ASSAY_BUILD_DIRECTORY) + "/lib/assay/examples",
          std::string(ASSAY_SOURCE_DIRECTORY) + "/kernels"};
}

TEST(Examples, AreCommittedResultsOfTheSourcesThatAreThere) {
  const auto examples = ReadExamples(Folders());
  ASSERT_TRUE(examples) << examples.error().message;
  EXPECT_EQ(examples->candidates.size(), 36u);
  bool machine = false, wrong = false, tie = false;
  for (const ExampleCandidate& candidate : examples->candidates) {
    EXPECT_THAT(candidate.player, HasSubstr("(example)"));
    machine = machine || candidate.role == Role::kMachine;
    wrong = wrong || candidate.verdict.outcome == Outcome::kWrong;
    tie = tie || candidate.verdict.outcome == Outcome::kTie;
  }
  EXPECT_TRUE(machine && wrong && tie);
  EXPECT_FALSE(examples->machine.ceilings.empty());
}

TEST(Examples, FillAnArchive) {
  const auto examples = ReadExamples(Folders());
  ASSERT_TRUE(examples) << examples.error().message;
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const auto store = SqliteStore::Open((folder->path() / "archive.sqlite").string());
  ASSERT_TRUE(store) << store.error().message;
  const auto added = AddExamples(*examples, **store, [](const ExampleCandidate& candidate) {
    return "{\"author\":\"" + candidate.player + "\"}";
  });
  ASSERT_TRUE(added) << added.error().message;
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  const auto verdicts = (*store)->Find(query);
  ASSERT_TRUE(verdicts);
  EXPECT_EQ(verdicts->size(), 36u);
  EXPECT_EQ((*store)->Get(verdicts->front().source)->empty(), false);
}

TEST(Examples, AChangedKernelIsRefused) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  ExampleFolders folders = Folders();
  folders.kernels = folder->path().string();
  ASSERT_TRUE(WriteFileAtomically(folder->path() / "adam_update/fused.c", "int changed;\n"));
  const auto examples = ReadExamples(folders);
  ASSERT_FALSE(examples);
  EXPECT_THAT(examples.error().message, HasSubstr("not as it was judged"));
}

}  // namespace
}  // namespace assay
