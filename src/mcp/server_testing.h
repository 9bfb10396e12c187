// A server whose worker and clock are a test's.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "mcp/mcp_testing.h"
#include "mcp/server.h"
#include "model/gradients.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"

namespace assay {

inline constexpr const char* kSource = "ASSAY_KERNEL(assay::Tensor<const float, 2> x) {}";

// The worker answers as a test says, and a test moves the clock.
class ServerTest : public testing::Test {
 protected:
  ServerTest() : templates_(PromptTemplates::Load(ASSAY_SOURCE_DIRECTORY "/prompts", "").value()) {}

  DeskPorts Ports() {
    DeskPorts ports;
    const std::vector<std::string> folders{ASSAY_SOURCE_DIRECTORY "/problems"};
    ports.suites = [folders]() -> Result<std::vector<Suite>> {
      return std::vector<Suite>{LoadSuite(folders.front()).value()};
    };
    ports.resolve = [folders](const ProblemChoice& choice) {
      return ResolveProblem(choice, folders);
    };
    ports.ask_worker = [this](const std::string& line, double seconds_max, const WorkLook&,
                              StopToken) -> Result<std::string> {
      asked_.push_back(McpJson::parse(line));
      seconds_given_ = seconds_max;
      return worker_says_;
    };
    ports.read_code = [](const CandidateSource&, StopToken) { return NativeCode(); };
    ports.profile_reference = [](const ProblemRequest& problem, StopToken) -> Result<std::string> {
      return "the hot spots of " + problem.name;
    };
    ports.write_file = [this](const std::string&,
                              const std::string& source) -> Result<std::string> {
      written_ = source;
      return "/files/opponent.cpp";
    };
    ports.find_verdict = [](const std::string& id) -> Result<KnownVerdict> {
      return UsageError("no verdict has the id " + id);
    };
    ports.find_attempt = [this](const std::string&) { return other_attempt_; };
    ports.fresh_handle = [this]() -> Result<std::string> {
      return fmt::format("job-{:08x}", ++handles_);
    };
    ports.record = [this](NewRecord record) { records_.push_back(std::move(record)); };
    ports.judged = [this](const JudgedSource& judged, const Verdict&) {
      judged_.push_back(judged.content);
    };
    ports.now_ns = [this] { return now_ns_; };
    return ports;
  }
  McpServer& Server() {
    if (server_) return *server_;
    DeskTerms terms;
    terms.judging.device = device_;
    terms.counters = counters_;
    terms.session = "mine";
    terms.templates = &templates_;
    desk_.emplace(seat_, Budget(limits_), Ports(), std::move(terms));
    server_.emplace(
        *desk_, [this] { return now_ns_; },
        [this](const std::string& line) { said_.push_back(McpJson::parse(line)); });
    return *server_;
  }
  // All that was said since the last look.
  std::vector<McpJson> Said() { return std::exchange(said_, {}); }
  McpJson Ask(const McpJson& message) {
    Server().Take(message.dump());
    auto said = Said();
    return said.empty() ? McpJson() : said.back();
  }
  static McpJson Request(const char* method, McpJson params, int id = 1) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
  }
  McpJson CallTool(const char* name, McpJson arguments, int id = 1) {
    return Ask(Request("tools/call", {{"name", name}, {"arguments", std::move(arguments)}}, id));
  }
  static McpJson Kernel(double wait_s) {
    return {{"problem", "softmax"},
            {"size", "tiny"},
            {"language", "cpp"},
            {"source", kSource},
            {"wait_s", wait_s}};
  }
  void WorkEnds() {
    seat_.DoIt();
    Server().Tick();
  }
  void WorkerGives(Outcome outcome) { worker_says_ = VerdictToJson(SampleVerdict(outcome), -1); }

  const PromptTemplates templates_;
  BudgetLimits limits_;
  FakeSeat seat_;
  int64_t now_ns_ = 0;
  int handles_ = 0;
  std::string device_ = "cpu";
  bool counters_ = false;
  double seconds_given_ = 0;
  std::string worker_says_, written_, other_attempt_;
  std::vector<McpJson> asked_, said_;
  std::vector<NewRecord> records_;
  std::vector<std::string> judged_;
  std::optional<Desk> desk_;
  std::optional<McpServer> server_;
};

}  // namespace assay
