// Against a real engine: $ASSAY_TEST_ENDPOINT is the URL of a chat endpoint, such as llama.cpp's
// "http://127.0.0.1:8080/v1", whatever model it serves. Skipped without it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "answer/code_of_answer.h"
#include "base/files.h"
#include "propose/make_proposer.h"

namespace assay {
namespace {

class RealEngine : public testing::TestWithParam<bool> {};

TEST_P(RealEngine, AnswersAndIsReplayed) {
  const char* url = ::getenv("ASSAY_TEST_ENDPOINT");
  if (url == nullptr) GTEST_SKIP() << "no $ASSAY_TEST_ENDPOINT";
  const TemporaryFolder folder = *TemporaryFolder::Create();
  const std::string record = (folder.path() / "transcript.jsonl").string();
  ProposerOptions options{.record_file = record, .timeout_s = 120};
  options.stream = GetParam();
  const auto proposer = MakeProposer(std::string("openai:any@") + url, options);
  ASSERT_TRUE(proposer) << proposer.error().message;
  std::vector<Answer> answers(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < answers.size(); ++i)
    threads.emplace_back([&, i] {
      Prompt prompt{"engine/" + std::to_string(i), "You write kernels.", "Write one."};
      prompt.answer_tokens_max = 6;
      prompt.seed = i;
      const auto answer = (*proposer)->Propose(prompt, {});
      ASSERT_TRUE(answer) << answer.error().message;
      answers[i] = *answer;
    });
  for (std::thread& thread : threads) thread.join();
  const auto replay = MakeProposer("replay:" + record, {});
  ASSERT_TRUE(replay) << replay.error().message;
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_FALSE(answers[i].model.empty());
    EXPECT_FALSE(answers[i].finish.empty());
    const auto again =
        (*replay)->Propose({"engine/" + std::to_string(i), "You write kernels.", "Write one."}, {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->text, answers[i].text);
    // Any result will do: a source, or a text for its author.
    const auto code = CodeOfAnswer(answers[i].text, CodeForm::kAny);
    EXPECT_TRUE(code || !code.error().empty());
  }
}
INSTANTIATE_TEST_SUITE_P(StreamingAndNot, RealEngine, testing::Bool());

}  // namespace
}  // namespace assay
