// A server's folder and a clock of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "base/files.h"
#include "serve/accounts.h"
#include "serve/database.h"

namespace assay {

class ServeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder) << folder.error().message;
    folder_.emplace(std::move(*folder));
    OpenAgain();
  }
  // As after the end of the process.
  virtual void OpenAgain() {
    database_.reset();
    auto database = Database::Open(place());
    ASSERT_TRUE(database) << database.error().message;
    database_ = std::move(*database);
  }
  std::string place() const { return folder_->path().string() + "/hall"; }
  void Pass(int64_t seconds) {
    now_.utc_s += seconds;
    now_.steady_ms += 1000 * seconds;
  }
  Account Somebody(const std::string& name, Role role = Role::kStudent) {
    return Accounts(*database_).Make(name, role, 0, now_).value();
  }

  Instant now_{1'800'000'000, 5000};
  std::optional<TemporaryFolder> folder_;
  std::unique_ptr<Database> database_;
};

}  // namespace assay
