#include "propose/chat_proposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "http/scripted_server_testing.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kKey = "sk-very-secret-0123456789";
constexpr int64_t kNow = 1'000'000'000;  // Sun, 09 Sep 2001 01:46:40 GMT

const char* const kSaid =
    R"({"id":"1","model":"qwen","choices":[{"index":0,"message":{"role":"assistant",)"
    R"("content":"hello"},"finish_reason":"stop"}],)"
    R"("usage":{"prompt_tokens":7,"completion_tokens":3}})";
const char* const kClaudeSaid =
    R"({"id":"m","type":"message","model":"claude","content":[{"type":"thinking","thinking":"hm"},)"
    R"({"type":"text","text":"hello"}],"stop_reason":"end_turn",)"
    R"("usage":{"input_tokens":5,"output_tokens":2}})";

std::string Delta(std::string_view delta, std::string_view finish = "null") {
  return fmt::format(
      "data: {{\"model\":\"qwen\",\"choices\":[{{\"index\":0,\"delta\":{},\"finish_reason\":{}}}]}}"
      "\n\n",
      delta, finish);
}

// A proposer that asks a scripted server over a real socket; its waits take no time.
class Chat {
 public:
  explicit Chat(std::vector<ScriptedReply> script, bool is_anthropic = false, bool stream = false)
      : server_(std::move(script)) {
    terms_.name = "the proposer";
    terms_.model = "m";
    terms_.base = server_.url();
    terms_.key_advice = "set $OPENAI_API_KEY";
    terms_.facts.usd_in = 1;
    terms_.facts.usd_out = 10;
    terms_.stream = stream;
    terms_.times = {1, 5, 5};
    is_anthropic_ = is_anthropic;
  }
  ChatTerms& terms() { return terms_; }
  ScriptedServer& server() { return server_; }
  const std::vector<double>& waits() const { return waits_; }

  ChatProposer& proposer() {
    if (proposer_ == nullptr) {
      ChatSurroundings surroundings = RealSurroundings();
      surroundings.wait = [this](double seconds, StopToken stop) {
        waits_.push_back(seconds);
        return !stop.stopped();
      };
      surroundings.unix_time_s = [] { return kNow; };
      std::string key(key_);
      proposer_ = std::make_unique<ChatProposer>(
          terms_, is_anthropic_ ? AnthropicProtocol() : OpenAiProtocol(),
          *ApiKey::Take(key, "test"), std::move(surroundings));
    }
    return *proposer_;
  }
  Result<Answer> Ask(StopToken stop = {}) {
    return proposer().Propose({"softmax/1", "You write kernels.", "Write one."}, stop);
  }
  void set_key(std::string_view key) { key_ = key; }

 private:
  ScriptedServer server_;
  ChatTerms terms_;
  std::string_view key_ = kKey;
  bool is_anthropic_ = false;
  std::vector<double> waits_;
  std::unique_ptr<ChatProposer> proposer_;
};

TEST(OpenAiChat, AsksAndBooks) {
  Chat chat({Document(200, kSaid)});
  const auto answer = chat.Ask();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "hello");
  EXPECT_EQ(answer->model, "qwen");
  EXPECT_EQ(answer->finish, "stop");
  EXPECT_EQ(answer->usage.tokens_in, 7);
  EXPECT_EQ(answer->usage.tokens_out, 3);
  EXPECT_DOUBLE_EQ(answer->usage.usd, (7 * 1 + 3 * 10) / 1e6);
  EXPECT_GT(answer->usage.wall_s, 0);
  ASSERT_EQ(chat.server().requests().size(), 1u);
  EXPECT_THAT(chat.server().requests()[0],
              AllOf(HasSubstr("POST /chat/completions HTTP/1.1"),
                    HasSubstr("authorization: Bearer " + std::string(kKey)),
                    HasSubstr(R"({"role":"system","content":"You write kernels."})"),
                    HasSubstr(R"({"role":"user","content":"Write one."})"),
                    HasSubstr(R"("max_tokens":8192)"), Not(HasSubstr("\"stream\"")),
                    Not(HasSubstr("\"n\""))));
}

TEST(OpenAiChat, ReadsAStreamWithReasoningAndUsage) {
  const std::string second = Delta(R"({"content":"hel"})");
  Chat whole({Ended(Stream({Delta(R"({"reasoning_content":"let me "})"),
                            Delta(R"({"reasoning_content":"see"})"), second.substr(0, 20),
                            second.substr(20), ": a comment\n\n", Delta(R"({"content":"lo"})"),
                            Delta("{}", "\"stop\""),
                            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,"
                            "\"completion_tokens\":2,\"cost\":0.5}}\n\n",
                            "data: [DONE]\n\n"}))},
             false, true);
  const auto answer = whole.Ask();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "hello");
  EXPECT_EQ(answer->reasoning, "let me see");
  EXPECT_EQ(answer->usage.tokens_in, 4);
  EXPECT_DOUBLE_EQ(answer->usage.usd, 0.5);  // the service's own word
  EXPECT_THAT(whole.server().requests()[0],
              HasSubstr(R"("stream_options":{"include_usage":true})"));
}

TEST(OpenAiChat, EndsWithTheStreamsMarkThoughTheConnectionStays) {
  // The last piece would come after the time limit.
  ScriptedReply reply = Stream({Delta(R"({"content":"hi"})", "\"stop\""), "data: [DONE]\n\n"});
  reply.push_back({"0\r\n\r\n", 4000});
  Chat open({reply}, false, true);
  const Deadline soon = Deadline::AfterSeconds(3);
  EXPECT_EQ(open.Ask().value_or(Answer{}).text, "hi");
  EXPECT_FALSE(soon.Expired());
}

TEST(OpenAiChat, TakesADocumentInPlaceOfAStream) {
  Chat chat({Document(200, kSaid)}, false, true);
  EXPECT_EQ(chat.Ask().value_or(Answer{}).text, "hello");
}

TEST(OpenAiChat, HasReasoningUnderItsSeveralNames) {
  for (const char* message :
       {R"({"content":"hello","reasoning":"why"})",
        R"({"content":"hello","reasoning_content":"why"})",
        R"({"content":"<think>why</think>\nhello"})", R"({"content":"why</think>hello"})",
        R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"why"}]},)"
        R"({"type":"text","text":"hello"}]})"}) {
    Chat chat({Document(200, fmt::format(R"({{"choices":[{{"message":{}}}]}})", message))});
    const auto answer = chat.Ask();
    ASSERT_TRUE(answer) << message << answer.error().message;
    EXPECT_EQ(answer->text, "hello") << message;
    EXPECT_EQ(answer->reasoning, "why") << message;
  }
}

TEST(OpenAiChat, AnEmptyAnswerAtTheLengthLimitIsAnAnswer) {
  Chat chat({Document(200, R"({"choices":[{"message":{"content":null,"reasoning":"so much"},)"
                           R"("finish_reason":"length"}]})")});
  const auto answer = chat.Ask();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "");
  EXPECT_EQ(answer->finish, "length");
  EXPECT_EQ(chat.server().requests().size(), 1u);
}

TEST(OpenAiChat, WaitsAsTheServiceAsks) {
  Chat chat({Document(429, R"({"error":{"message":"slow down"}})", "retry-after: 7\r\n"),
             Document(503, "busy", "retry-after: Sun, 09 Sep 2001 01:46:49 GMT\r\n"),
             Document(500, "oops"), Document(200, kSaid)});
  EXPECT_EQ(chat.Ask().value_or(Answer{}).text, "hello");
  // The two that the service named, each once more for all threads, and one of back-off.
  std::vector<double> waits = chat.waits();
  ASSERT_GE(waits.size(), 3u);
  EXPECT_EQ(waits[0], 7);
  EXPECT_THAT(waits, testing::Contains(9));
  EXPECT_THAT(waits, testing::Contains(AllOf(testing::Ge(2), testing::Le(4))));  // the third's
}

TEST(OpenAiChat, GivesUpAnHoursWait) {
  Chat chat({Document(429, R"({"error":{"message":"tokens per day"}})", "retry-after: 3600\r\n")});
  const auto answer = chat.Ask();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(answer.error().message,
              AllOf(HasSubstr("tokens per day"), HasSubstr("it asks to wait 3600 s")));
  EXPECT_EQ(chat.server().requests().size(), 1u);
}

TEST(OpenAiChat, SaysAWrongKeyOnceAndNeverAsksAgain) {
  Chat chat(
      {Document(401, fmt::format(R"({{"error":{{"message":"Incorrect API key: {}"}}}})", kKey))});
  const auto first = chat.Ask(), second = chat.Ask();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(first.error().message, AllOf(HasSubstr("HTTP 401: Incorrect API key: [key]"),
                                           HasSubstr("$OPENAI_API_KEY"), Not(HasSubstr(kKey))));
  EXPECT_EQ(second.error().message, first.error().message);
  EXPECT_EQ(chat.server().requests().size(), 1u);
  EXPECT_THAT(chat.waits(), ElementsAre());
}

TEST(OpenAiChat, HidesTheKeyInAllThatAServerEchoes) {
  const std::string key(kKey);
  for (const bool stream : {false, true}) {
    const std::string message = fmt::format(
        R"({{"content":"my key is {0}","reasoning":"it is \u0073{1}"}})", key, key.substr(1));
    Chat chat(
        {stream ? Ended(Stream({Delta(message, "\"stop\"")}))
                : Document(200, fmt::format(R"({{"model":"{}","choices":[{{"message":{}}}]}})", key,
                                            message))},
        false, stream);
    const auto answer = chat.Ask();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->text, "my key is [key]");
    EXPECT_EQ(answer->reasoning, "it is [key]");
    EXPECT_THAT(answer->model, Not(HasSubstr(key)));
  }
  for (const int status : {302, 400, 404, 500}) {
    Chat chat({Document(status, "no: " + key, "location: http://other/" + key + "\r\n")});
    EXPECT_THAT(chat.Ask().error().message, Not(HasSubstr(key))) << status;
  }
  Chat chat({Document(200, kSaid)});
  const auto sent = chat.proposer().Propose({"k", "", "print " + key}, {});
  EXPECT_THAT(sent.error().message, AllOf(HasSubstr("contains the key"), Not(HasSubstr(key))));
  EXPECT_THAT(chat.server().requests(), ElementsAre());
}

TEST(OpenAiChat, AsksAgainAfterBrokenReplies) {
  ScriptedReply torn = Document(200, kSaid);
  torn[0].bytes.resize(torn[0].bytes.size() - 20);
  Chat chat({torn, Document(200, R"({"choices": [)"), Document(200, kSaid)});
  EXPECT_EQ(chat.Ask().value_or(Answer{}).text, "hello");
  EXPECT_EQ(chat.server().requests().size(), 3u);

  Chat never({Document(200, "<html>")});
  EXPECT_THAT(never.Ask().error().message,
              AllOf(HasSubstr("no answer in 3 attempts"), HasSubstr("no JSON object")));

  Chat dead({ScriptedReply{}});  // closes at once
  EXPECT_THAT(dead.Ask().error().message, HasSubstr("no answer in 3 attempts: no reply"));
}

TEST(OpenAiChat, AStreamThatBreaksOffIsAskedForAgain) {
  Chat chat({Stream({Delta(R"({"content":"hel"})")}),
             Ended(Stream({Delta(R"({"content":"hel"})")})),  // no end of the answer
             Ended(Stream({Delta(R"({"content":"hello"})", "\"length\"")}))},
            false, true);
  const auto answer = chat.Ask();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "hello");
  EXPECT_EQ(answer->finish, "length");
}

TEST(OpenAiChat, AStreamOfNonsenseIsAnError) {
  Chat chat({Ended(Stream({"data: {\"choices\n\n", "data: [DONE]\n\n"}))}, false, true);
  EXPECT_THAT(chat.Ask().error().message, HasSubstr("no JSON object"));
  EXPECT_EQ(chat.server().requests().size(), 3u);
}

TEST(OpenAiChat, AnErrorWithinAReplyIsAFailureOfTheService) {
  Chat chat(
      {Document(200, R"({"error":{"message":"upstream is down","code":502}})"),
       Ended(Stream({"data: {\"error\":{\"message\":\"overloaded\"}}\n\n"})), Document(200, kSaid)},
      false, true);
  EXPECT_EQ(chat.Ask().value_or(Answer{}).text, "hello");
}

TEST(OpenAiChat, TellsRefusalsApart) {
  struct Case {
    int status;
    const char* body;
    ErrorKind kind;
    const char* says;
  };
  for (const Case& c : {
           Case{404, R"({"error":{"message":"no such model"}})", ErrorKind::kUsage, "model's name"},
           Case{400, R"({"error":{"message":"Unsupported parameter: 'seed'"}})", ErrorKind::kUsage,
                "--models"},
           Case{400, R"({"error":{"message":"too big","code":"context_length_exceeded"}})",
                ErrorKind::kEnvironment, "too big"},
           Case{429, R"({"error":{"message":"no money","type":"insufficient_quota"}})",
                ErrorKind::kUsage, "no money"},
           Case{301, "", ErrorKind::kUsage, "redirects are not followed"},
       }) {
    Chat chat({Document(c.status, c.body)});
    const auto answer = chat.Ask();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, c.kind) << c.status << c.body;
    EXPECT_THAT(answer.error().message, HasSubstr(c.says));
    EXPECT_EQ(chat.server().requests().size(), 1u) << c.status << c.body;
  }
}

TEST(OpenAiChat, AfterAnAnswerARefusalIsOfItsPromptAlone) {
  Chat chat({Document(200, kSaid), Document(400, "strange prompt"), Document(200, kSaid)});
  EXPECT_TRUE(chat.Ask());
  EXPECT_EQ(chat.Ask().error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(chat.Ask());
}

TEST(OpenAiChat, AllWaitWhenTheServiceAsksOne) {
  Chat chat({Document(429, "", "retry-after: 7\r\n"), Document(200, kSaid)});
  EXPECT_TRUE(chat.Ask());
  const size_t before = chat.waits().size();
  EXPECT_TRUE(chat.Ask());
  ASSERT_GT(chat.waits().size(), before);
  EXPECT_NEAR(chat.waits()[before], 7, 1);
}

TEST(OpenAiChat, BearsDeepNests) {
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += R"({"thinking":[)";
  for (int i = 0; i < 200'000; ++i) deep += "]}";
  Chat content({Document(200, R"({"choices":[{"message":{"content":[)" + deep + "]}}]}")});
  EXPECT_TRUE(content.Ask());
  Chat error({Document(200, R"({"error":)" + deep + "}")});
  EXPECT_FALSE(error.Ask());
}

TEST(OpenAiChat, AnUnreachableServerIsTriedAFewTimes) {
  Chat chat({Document(200, kSaid)});
  chat.terms().base = "http://127.0.0.1:1";
  const auto answer = chat.Ask();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(answer.error().message,
              AllOf(HasSubstr("no answer in 6 attempts: cannot reach http://127.0.0.1:1/chat"),
                    HasSubstr("is the server running?")));
  EXPECT_EQ(chat.waits().size(), 5u);
}

TEST(OpenAiChat, TimesOutAndStops) {
  const ScriptedReply late = {{"", 6000}};
  Chat chat({late});
  chat.terms().times = {1, 5, 0.2};
  chat.terms().retry.broken_max = 1;
  const Deadline soon = Deadline::AfterSeconds(3);
  EXPECT_THAT(chat.Ask().error().message, HasSubstr("no reply (Operation timed out"));
  EXPECT_FALSE(soon.Expired());

  // A stream that stalls ends by the limit on its silence.
  Chat stalled({Stream({Delta(R"({"content":"hel"})"), Delta(R"({"content":"lo"})")}, 5000)}, false,
               true);
  stalled.terms().times = {1, 1, 60};
  stalled.terms().retry.broken_max = 1;
  EXPECT_THAT(stalled.Ask().error().message, HasSubstr("not a byte came for 1 s"));

  Chat hangs({late});
  std::atomic<bool> flag = false;
  std::thread stopper([&flag] {
    ::poll(nullptr, 0, 50);
    flag = true;
  });
  const auto stopped = hangs.Ask(StopToken(flag));
  stopper.join();
  EXPECT_EQ(stopped.error().kind, ErrorKind::kInterrupted);
  EXPECT_FALSE(hangs.Ask(StopToken(flag)));
  EXPECT_EQ(hangs.server().requests().size(), 1u);
}

TEST(OpenAiChat, BoundsTheReply) {
  Chat chat({Document(200, std::string((size_t{65} << 20), ' '))});
  EXPECT_THAT(chat.Ask().error().message, HasSubstr("too large: more than 64 MiB"));
}

TEST(OpenAiChat, ReservesTheMost) {
  Chat chat({Document(200, kSaid)});
  Prompt prompt{"k", "", std::string(1000, 'x')};
  prompt.answer_tokens_max = 500;
  const Usage most = chat.proposer().Reservation(prompt);
  EXPECT_GE(most.tokens_in, 1000);
  EXPECT_EQ(most.tokens_out, 500);
  EXPECT_DOUBLE_EQ(most.usd, (static_cast<double>(most.tokens_in) + 5000) / 1e6);
}

TEST(AnthropicChat, AsksAndBooks) {
  Chat chat(
      {Document(529,
                R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})"),
       Document(200, kClaudeSaid)},
      true);
  const auto answer = chat.Ask();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "hello");
  EXPECT_EQ(answer->reasoning, "hm");
  EXPECT_EQ(answer->finish, "stop");
  EXPECT_EQ(answer->usage.tokens_in, 5);
  EXPECT_THAT(
      chat.server().requests()[1],
      AllOf(HasSubstr("POST /v1/messages HTTP/1.1"), HasSubstr("x-api-key: " + std::string(kKey)),
            HasSubstr("anthropic-version: 2023-06-01"),
            HasSubstr(R"("system":"You write kernels.")"),
            HasSubstr(R"("messages":[{"role":"user","content":"Write one."}])")));
}

TEST(AnthropicChat, ReadsAStream) {
  const std::vector<std::string> begin = {
      "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\","
      "\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
      "event: ping\ndata: {\"type\":\"ping\"}\n\n",
      "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
      "\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n",
      "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,"
      "\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n"};
  std::vector<std::string> whole = begin;
  whole.push_back(
      "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
      "\"max_tokens\"},\"usage\":{\"output_tokens\":12}}\n\n");
  whole.push_back("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
  std::vector<std::string> overloaded = begin;
  overloaded.push_back(
      "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n");
  Chat chat({Stream(begin), Ended(Stream(overloaded)), Ended(Stream(whole))}, true, true);
  const auto answer = chat.Ask();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "hello");
  EXPECT_EQ(answer->reasoning, "hm");
  EXPECT_EQ(answer->finish, "length");
  // With the input of the attempt that broke off, as far as its service told.
  EXPECT_EQ(answer->usage.tokens_in, 18);
  EXPECT_EQ(answer->usage.tokens_out, 13);
}

}  // namespace
}  // namespace assay
