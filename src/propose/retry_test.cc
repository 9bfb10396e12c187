#include "propose/retry.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ReadServiceError, KnowsTheUsualForms) {
  EXPECT_EQ(ReadServiceError(R"({"error":{"message":"m","type":"t","code":"c"}})").message, "m");
  EXPECT_EQ(ReadServiceError(R"({"error":{"message":"m","type":"t","code":"c"}})").type, "c t");
  EXPECT_EQ(ReadServiceError(R"({"error":"m"})").message, "m");
  EXPECT_EQ(ReadServiceError(R"({"detail":"m"})").message, "m");
  EXPECT_EQ(ReadServiceError("<b>\x1b[31m502\n</b>").message, "<b> [31m502 </b>");
  EXPECT_EQ(ReadServiceError("").message, "");
  EXPECT_LE(ReadServiceError(std::string(10000, 'x')).message.size(), 400u);
}

TEST(RemedyOf, TellsKindsApart) {
  for (const int status : {408, 409, 425, 429, 500, 502, 503, 504, 529})
    EXPECT_EQ(RemedyOf(status, {}), Remedy::kRetry) << status;
  for (const int status : {400, 401, 402, 403, 404, 422})
    EXPECT_EQ(RemedyOf(status, {}), Remedy::kFixRequest) << status;
  EXPECT_EQ(RemedyOf(413, {}), Remedy::kFixPrompt);
  EXPECT_EQ(RemedyOf(400, {"prompt is too long: 9 tokens", "invalid_request_error"}),
            Remedy::kFixPrompt);
  EXPECT_EQ(RemedyOf(400, {"Your credit balance is too low", ""}), Remedy::kFixRequest);
  EXPECT_EQ(RemedyOf(429, {"You exceeded your current quota", ""}), Remedy::kFixRequest);
}

}  // namespace
}  // namespace assay
