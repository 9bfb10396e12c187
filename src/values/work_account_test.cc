#include "values/work_account.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr const char* kAccount = R"json({
  "inputs": ["x float32[4, 8]"], "parameters": [], "outputs": ["out float32[4, 8]"],
  "figures": {}, "forward_known": true, "peak_bytes": 256,
  "operators": [
    {"name": "exp", "calls": 1, "operations": 32, "read_bytes": 128, "written_bytes": 128},
    {"name": "div", "calls": 2, "operations": 64, "read_bytes": 512, "written_bytes": 256}]
})json";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kAccount;
  return text.replace(text.find(from), from.size(), to);
}

TEST(LibrariesOf, AreThoseOfTheOperators) {
  const auto of = [](const std::string& name) {
    return LibrariesOf(ParseWorkAccount(With("\"div\"", '"' + name + '"')).value());
  };
  EXPECT_EQ(of("div"), 0U);
  EXPECT_EQ(of("addmm"), wire::kUsesProducts);
  EXPECT_EQ(of("convolution"), wire::kUsesConvolutions);
}

TEST(WorkAccount, OperatorsAreAddedUp) {
  const WorkAccount account = ParseWorkAccount(kAccount).value();
  EXPECT_EQ(CountedOperations(account), 96);
  EXPECT_EQ(UnfusedBytes(account), 1024);
  const Work work = WorkOf(128, 128, account);
  EXPECT_EQ(work.operations, 96);
  EXPECT_EQ(work.operations_from, "counted");
  EXPECT_EQ(work.bytes, 256);
  EXPECT_EQ(work.written_bytes, 128);
  EXPECT_EQ(work.bytes_from, "signature");
  EXPECT_EQ(work.peak_bytes, 256);
}

TEST(WorkAccount, TheShareOfMatrixProductsIsThatOfTheirOperations) {
  EXPECT_EQ(MatrixShare(ParseWorkAccount(kAccount).value()), 0);
  EXPECT_DOUBLE_EQ(MatrixShare(ParseWorkAccount(With("\"div\"", "\"addmm\"")).value()), 2.0 / 3);
  EXPECT_DOUBLE_EQ(
      MatrixShare(
          ParseWorkAccount(With("\"exp\"", "\"_scaled_dot_product_flash_attention\"")).value()),
      1.0 / 3);
  EXPECT_EQ(MatrixShare(ParseWorkAccount("{}").value()), 1);
}

TEST(WorkAccount, WhatTheSuiteSaysGoesFirst) {
  const WorkAccount account =
      ParseWorkAccount(With(R"("figures": {})", R"("figures": {"flops": 7, "bytes": 100})"))
          .value();
  const Work work = WorkOf(128, 128, account);
  EXPECT_EQ(work.operations, 7);
  EXPECT_EQ(work.operations_from, "suite");
  EXPECT_EQ(work.bytes, 100);
  EXPECT_EQ(work.bytes_from, "suite");
}

TEST(WorkAccount, ViewsAndChangedInputsCountByWhatMustBeTouched) {
  const auto tensor = [](wire::Role role, uint64_t size_bytes, uint64_t used_bytes, uint64_t twin) {
    wire::ArgumentSpec argument{};
    argument.role = role;
    argument.size_bytes = size_bytes;
    argument.used_bytes = used_bytes;
    argument.twin = twin;
    return argument;
  };
  ProblemDescription description;
  description.arguments = {
      tensor(wire::Role::kInput, 1000, 0, 5), tensor(wire::Role::kInput, 400, 100, 0),
      tensor(wire::Role::kInput, 8, 0, 0), tensor(wire::Role::kOutput, 16, 0, 0),
      tensor(wire::Role::kOutput, 1000, 32, 1)};
  const Work work = WorkOf(description, ParseWorkAccount("{}").value());
  EXPECT_EQ(work.bytes, 100 + 8 + 16 + 32);
  EXPECT_EQ(work.written_bytes, 16 + 32);
}

TEST(WorkAccount, AForwardThatCannotBeFollowedHasNoOperations) {
  const WorkAccount account =
      ParseWorkAccount(With(R"("forward_known": true)", R"("forward_known": false)")).value();
  EXPECT_EQ(WorkOf(128, 128, account).operations_from, "unknown");
  // A file that fake tensors cannot follow at all is an empty account.
  EXPECT_EQ(WorkOf(1, 1, ParseWorkAccount("{}").value()).operations_from, "unknown");
}

TEST(WorkAccount, FiguresThatCannotBeAreRefusedOrIgnored) {
  EXPECT_FALSE(ParseWorkAccount(""));
  EXPECT_FALSE(ParseWorkAccount("[1, 2]"));
  EXPECT_FALSE(ParseWorkAccount(With(R"("calls": 2)", R"("calls": "two")")));
  EXPECT_FALSE(ParseWorkAccount(With(R"("outputs":)", R"("outs":)")));
  const auto negative = ParseWorkAccount(With(R"("operations": 64)", R"("operations": -64)"));
  EXPECT_EQ(CountedOperations(*negative), 32);
}

}  // namespace
}  // namespace assay
