// Worklogs as they come to a server, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "serve/tar.h"
#include "serve/worklog_upload.h"
#include "worklog/worklog_testing.h"

namespace assay {

inline const TarLibrary& Tars() {
  static const TarLibrary library =
      TarLibrary::Open(ASSAY_BUILD_DIRECTORY "/lib/assay/tar.so").value();
  return library;
}

// The files of the builder's worklog, with worklog.md as it is rendered.
inline std::vector<TarFile> FilesOf(MatchBuilder& builder) {
  const Worklog worklog = builder.Build();
  const TemporaryFolder scratch = TemporaryFolder::Create().value();
  WorklogFolder folder = WorklogFolder::Make(scratch.path().string()).value();
  EXPECT_TRUE(folder.AddFacts(builder.facts()));
  EXPECT_TRUE(folder.AddWords(WordsHead(worklog.words)));
  for (const PredictionWords& each : worklog.words.predictions)
    EXPECT_TRUE(folder.AddWords(WordsOf(each)));
  for (const VersionWords& each : worklog.words.versions)
    EXPECT_TRUE(folder.AddWords(WordsOf(each)));
  for (const ClaimWords& each : worklog.words.claims) EXPECT_TRUE(folder.AddWords(WordsOf(each)));
  for (const StuckWords& each : worklog.words.stuck) EXPECT_TRUE(folder.AddWords(WordsOf(each)));
  for (const auto& [file, source] : worklog.sources) EXPECT_TRUE(folder.Write(file, source));
  for (const Section section : kAllSections) {
    const std::string& prose = worklog.words.Prose(section);
    if (!prose.empty()) {
      EXPECT_TRUE(folder.Write(SectionFile(section), prose));
    }
  }
  std::vector<TarFile> files = FilesOfWorklogFolder(scratch.path().string()).value();
  const std::string rendered = ReadUploadedWorklog(files).value().rendered;
  EXPECT_TRUE(folder.Write(kMarkdownFile, rendered));
  return FilesOfWorklogFolder(scratch.path().string()).value();
}

}  // namespace assay
