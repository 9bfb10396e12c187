#include "serve/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "archive/sqlite_store.h"
#include "base/files.h"
#include "serve/accounts.h"
#include "serve/board.h"
#include "serve/worklogs.h"

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
  EXPECT_EQ(examples->searches.size(), 139u);
}

TEST(Examples, FillAFreshFolder) {
  const auto examples = ReadExamples(Folders());
  ASSERT_TRUE(examples) << examples.error().message;
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const auto tars = TarLibrary::Open(std::string(ASSAY_BUILD_DIRECTORY) + "/lib/assay/tar.so");
  ASSERT_TRUE(tars) << tars.error().message;
  const auto filled = FillWithExamples(*examples, *tars, folder->path().string());
  ASSERT_TRUE(filled) << filled.error().message;
  const auto database = Database::Open(folder->path().string());
  ASSERT_TRUE(database) << database.error().message;
  const auto store = SqliteStore::Open((folder->path() / "archive.sqlite").string());
  ASSERT_TRUE(store) << store.error().message;
  Board board(**database, **store);
  ASSERT_TRUE(board.Load());
  ASSERT_TRUE(board.CatchUp());
  EXPECT_EQ(std::ranges::count_if(board.rows(), &BoardRow::is_entry),
            std::ssize(examples->candidates) + 1);
  // Verdicts of a search have pages, and no rank.
  const BoardRow* searched = board.Find("cf42c61fb228");
  ASSERT_NE(searched, nullptr);
  EXPECT_FALSE(searched->is_entry());
  // The result of a search whose candidates a model wrote is the model's.
  const BoardRow* submitted = board.Find("509a18b5b6bb");
  ASSERT_NE(submitted, nullptr);
  EXPECT_EQ(submitted->entry.author, "a language model (example)");
  EXPECT_GT(submitted->certified, 5);
  const BoardRow* layer_norm = board.Find("814b70bddabf");
  ASSERT_NE(layer_norm, nullptr);
  EXPECT_EQ(layer_norm->entry.author, "student 1 (example)");
  EXPECT_EQ(layer_norm->entry.time, "2026-11-21T16:34:17Z");
  EXPECT_GT(layer_norm->certified, 1.1);
  const auto source = (*store)->Get(layer_norm->entry.source_hash);
  ASSERT_TRUE(source);
  EXPECT_THAT(*source, HasSubstr("Layer normalisation"));
  const auto model = Accounts(**database).FindByName("a language model (example)");
  ASSERT_TRUE(model && *model);
  EXPECT_EQ((*model)->role, Role::kMachine);
  EXPECT_GT((*model)->class_id, 0);
  const auto worklogs = Worklogs(**database, **store, *tars).OfClass((*model)->class_id);
  ASSERT_TRUE(worklogs);
  ASSERT_EQ(worklogs->size(), 1u);
  EXPECT_EQ(worklogs->front().author.name, "student 5 (example)");
  const auto chain = VerifyChain(**store);
  ASSERT_TRUE(chain);
  EXPECT_TRUE(chain->faults.empty());
  EXPECT_FALSE(FillWithExamples(*examples, *tars, folder->path().string()));
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
