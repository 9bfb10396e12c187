#include "serve/accounts.h"

#include <gmock/gmock.h>

#include "serve/serve_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class AccountsTest : public ServeTest {
 protected:
  Accounts accounts() { return Accounts(*database_); }
};

TEST_F(AccountsTest, ATokenNamesItsAccountUntilItEndsOrIsRevoked) {
  const Account ann = Somebody("ann", Role::kMentor);
  const std::string token = accounts().IssueAccess(ann.id, now_, 100).value();
  const std::string lasting = accounts().IssueAccess(ann.id, now_).value();
  EXPECT_EQ(token.size(), 32u);
  OpenAgain();
  const auto found = accounts().OfAccess(token, now_).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "ann");
  EXPECT_EQ(found->role, Role::kMentor);
  EXPECT_FALSE(accounts().OfSession(token, now_).value()) << "no session";
  Pass(101);
  EXPECT_FALSE(accounts().OfAccess(token, now_).value());
  EXPECT_TRUE(accounts().OfAccess(lasting, now_).value());
  ASSERT_TRUE(accounts().Revoke(lasting));
  EXPECT_FALSE(accounts().OfAccess(lasting, now_).value());
  EXPECT_FALSE(accounts().OfAccess("", now_).value());
  EXPECT_FALSE(accounts().OfAccess("' OR 1 --", now_).value());
}

TEST_F(AccountsTest, TheFileHasNoToken) {
  const Account ann = Somebody("ann");
  const std::string token = accounts().IssueAccess(ann.id, now_).value();
  const std::string session = accounts().IssueSession(ann.id, now_).value();
  database_.reset();
  const std::string bytes = ReadFile(place() + "/serve.sqlite", 1 << 26).value();
  EXPECT_EQ(bytes.find(token), std::string::npos);
  EXPECT_EQ(bytes.find(session), std::string::npos);
}

TEST_F(AccountsTest, ASessionEndsAndGivesItsFormsATokenOfTheirOwn) {
  const Account ann = Somebody("ann");
  const std::string session = accounts().IssueSession(ann.id, now_).value();
  EXPECT_TRUE(accounts().OfSession(session, now_).value());
  EXPECT_NE(CsrfTokenOf(session), CsrfTokenOf(accounts().IssueSession(ann.id, now_).value()));
  EXPECT_EQ(CsrfTokenOf(session).find(session.substr(0, 8)), std::string::npos);
  Pass(15 * 24 * 3600);
  EXPECT_FALSE(accounts().OfSession(session, now_).value());
  Pass(-10 * 24 * 3600);
  EXPECT_FALSE(accounts().OfSession(session, now_).value()) << "the clock went back";
}

TEST_F(AccountsTest, NamesAreTakenOnceAndShowWhatTheyAre) {
  Somebody("ann");
  const auto again = accounts().Make("ANN", Role::kStudent, 0, now_);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("is taken"));
  const auto alike = accounts().Make("\u0430nn", Role::kStudent, 0, now_);
  EXPECT_FALSE(alike);
  Somebody("P. Lee");
  const auto digit = accounts().Make("P. 1ee", Role::kStudent, 0, now_);
  ASSERT_FALSE(digit);
  EXPECT_THAT(digit.error().message, HasSubstr("looks like P. Lee"));
}

TEST_F(AccountsTest, TheServersAccountIsOne) {
  const Account ann = Somebody("ann");
  const Account server = accounts().ServerAccount(now_).value();
  EXPECT_EQ(accounts().ServerAccount(now_)->id, server.id);
  EXPECT_TRUE(accounts().IsServer(server.id).value());
  EXPECT_FALSE(accounts().IsServer(ann.id).value());
}

TEST_F(AccountsTest, ASecondProcessIsRefusedTheFolder) {
  const auto second = Database::Open(place());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(second.error().message, HasSubstr("served by another process"));
}

TEST_F(AccountsTest, AWriteThatFailsLeavesNothing) {
  const auto written = database_->Write([&]() -> Result<void> {
    Somebody("ann");
    return EnvironmentError("the disk is full");
  });
  EXPECT_FALSE(written);
  EXPECT_FALSE(accounts().FindByName("ann").value());
  Somebody("ann");
}

}  // namespace
}  // namespace assay
