// A death test for each rule of the seccomp tables, made from the tables themselves: in the sandbox
// as it is, and in one from whose filter that rule alone is taken, where the call must get through
// to the kernel.
#include "sandbox/seccomp.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <sstream>

#include "sandbox/sandbox_testing.h"

namespace assay {
namespace {

// No kernel answers with it, so that only the filter can have.
constexpr int kMark = 1234;
// Not a process, a descriptor or a flag, nor an address that can be read.
constexpr uint64_t kNothing = 0x7fffff00;

using Arguments = std::array<uint64_t, 6>;

// A value that the condition does, or does not, fit.
uint64_t ValueFor(const SeccompCondition& condition, bool fits) {
  switch (condition.kind) {
    case SeccompCondition::kIs:
      return fits ? condition.value : kNothing;
    case SeccompCondition::kIsNot:
      return fits ? condition.value ^ 3 : condition.value;
    case SeccompCondition::kHas:
      return fits ? condition.value : 0;
    case SeccompCondition::kHasNot:
      return fits ? 0 : condition.value;
    case SeccompCondition::kAbove:
      return fits ? kNothing : condition.value;
  }
  return 0;
}

// Arguments that this rule refuses, and no other rule of the program.
Arguments ArgumentsFor(const SeccompRule& rule, const std::vector<SeccompRule>& rules) {
  Arguments arguments;
  arguments.fill(kNothing);
  for (const SeccompRule& other : rules)
    if (std::string(other.call) == rule.call && other.condition)
      arguments[other.condition->argument] = ValueFor(*other.condition, false);
  if (rule.condition) arguments[rule.condition->argument] = ValueFor(*rule.condition, true);
  return arguments;
}

// As the probe reads it.
std::string CallText(const SeccompRule& rule, const Arguments& arguments) {
  std::string text = std::to_string(SystemCallNumber(rule.call));
  for (const uint64_t argument : arguments) text += "," + std::to_string(argument);
  return text;
}

std::string NameOf(const SeccompRule& rule) {
  std::string name = rule.call;
  if (rule.condition)
    name += " argument " + std::to_string(rule.condition->argument) + " against " +
            std::to_string(rule.condition->value);
  return name;
}

bool Exists(const SeccompRule& rule) { return SystemCallNumber(rule.call) >= 0; }

// Who installs the program: confine, before the command is executed, or a host on itself.
enum class By { kConfine, kHost };

// Runs the calls one after the other, where nothing but this program filters; their errnos.
// -signal stands for a call that ended the process.
std::vector<int> ResultsUnder(const std::string& program, By by,
                              const std::vector<std::string>& calls) {
  SandboxTools tools = ProbedSandboxTools();
  tools.filters = {by == By::kConfine ? program : "", "", ""};
  SandboxRequest request = ProbeRequest({"calls"});
  const UniqueFd fd(::memfd_create("program", MFD_CLOEXEC));
  if (by == By::kHost) {
    EXPECT_EQ(::pwrite(fd.get(), program.data(), program.size(), 0),
              static_cast<ssize_t>(program.size()));
    request.arguments = {"/assay/probe", "locked_calls", "4"};
    request.descriptors = {{fd.get(), 4}};
  }
  request.arguments.insert(request.arguments.end(), calls.begin(), calls.end());
  request.may_start_processes = true;
  const auto run = RunToolWith(tools, request, "", Deadline::AfterSeconds(30));
  std::vector<int> results;
  if (!run) {
    ADD_FAILURE() << run.error().message;
    return results;
  }
  std::istringstream text(run->output);
  for (int result = 0; text >> result;) results.push_back(result);
  if (!run->exit.exited) results.push_back(-run->exit.status);
  return results;
}

std::vector<SeccompRule> Without(std::vector<SeccompRule> rules, size_t index) {
  rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(index));
  return rules;
}

struct Table {
  const char* name;
  By by;
  std::vector<SeccompRule> rules;
};
void PrintTo(const Table& table, std::ostream* stream) { *stream << table.name; }

class SeccompTable : public ::testing::TestWithParam<Table> {};

TEST_P(SeccompTable, RefusesByEachOfItsRules) {
  const auto& rules = GetParam().rules;
  const std::string deployed = CompileRules(rules).value();
  const std::string marked = CompileRules(rules, kMark).value();
  std::vector<std::string> calls;
  std::vector<const SeccompRule*> refused;
  for (const SeccompRule& rule : rules) {
    if (!Exists(rule)) continue;
    const std::string call = CallText(rule, ArgumentsFor(rule, rules));
    if (rule.answer == SeccompAnswer::kKill) {
      EXPECT_THAT(ResultsUnder(deployed, GetParam().by, {call}), ::testing::ElementsAre(-SIGSYS))
          << NameOf(rule);
      continue;
    }
    calls.push_back(call);
    refused.push_back(&rule);
  }
  const std::vector<int> answers = ResultsUnder(deployed, GetParam().by, calls);
  const std::vector<int> marks = ResultsUnder(marked, GetParam().by, calls);
  ASSERT_EQ(answers.size(), refused.size());
  ASSERT_EQ(marks.size(), refused.size());
  for (size_t i = 0; i < refused.size(); ++i) {
    const bool absent = refused[i]->answer == SeccompAnswer::kAbsent;
    EXPECT_EQ(answers[i], absent ? ENOSYS : EPERM) << NameOf(*refused[i]);
    EXPECT_EQ(marks[i], absent ? ENOSYS : kMark) << NameOf(*refused[i]);
  }
}

TEST_P(SeccompTable, MissesEachRuleThatIsTakenAway) {
  const auto& rules = GetParam().rules;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!Exists(rules[i])) continue;
    const std::string program = CompileRules(Without(rules, i), kMark).value();
    const auto results =
        ResultsUnder(program, GetParam().by, {CallText(rules[i], ArgumentsFor(rules[i], rules))});
    ASSERT_FALSE(results.empty()) << NameOf(rules[i]);
    switch (rules[i].answer) {
      case SeccompAnswer::kRefuse:
        EXPECT_NE(results.front(), kMark) << NameOf(rules[i]);
        break;
      case SeccompAnswer::kAbsent:
        EXPECT_NE(results.front(), ENOSYS) << NameOf(rules[i]);
        break;
      case SeccompAnswer::kKill:
        EXPECT_NE(results.front(), -SIGSYS) << NameOf(rules[i]);
        break;
    }
  }
}

// An int's upper half is invisible to the kernel, and must not hide the lower from the filter.
TEST_P(SeccompTable, SeesThroughAnUpperHalf) {
  const auto& rules = GetParam().rules;
  std::vector<std::string> calls;
  for (const SeccompRule& rule : rules) {
    if (!Exists(rule) || !rule.condition || rule.answer != SeccompAnswer::kRefuse) continue;
    Arguments arguments = ArgumentsFor(rule, rules);
    arguments[rule.condition->argument] |= uint64_t{1} << 32;
    calls.push_back(CallText(rule, arguments));
  }
  if (calls.empty()) GTEST_SKIP() << "no rule of this table looks at an argument";
  EXPECT_THAT(ResultsUnder(CompileRules(rules, kMark).value(), GetParam().by, calls),
              ::testing::Each(kMark));
}

TEST_P(SeccompTable, NamesSystemCallsThatAreKnown) {
  // Of other architectures. Whatever else is not known here would be a rule that does nothing.
  const std::vector<std::string> foreign = {"umount",          "stime", "clock_settime64",
                                            "clock_adjtime64", "vm86",  "vm86old"};
  for (const SeccompRule& rule : GetParam().rules) {
    EXPECT_NE(SystemCallNumber(rule.call), __NR_SCMP_ERROR) << rule.call;
#if defined(__x86_64__)
    const bool is_foreign = std::find(foreign.begin(), foreign.end(), rule.call) != foreign.end();
    EXPECT_EQ(Exists(rule), !is_foreign) << rule.call;
#endif
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tables, SeccompTable,
    ::testing::Values(Table{"base", By::kConfine, BaseRules()},
                      Table{"loopback", By::kConfine, BaseRules(SocketFamilies::kUnixAndInternet)},
                      Table{"no_processes", By::kConfine, NoProcessRules()},
                      Table{"lockdown", By::kHost, LockdownRules(false)},
                      Table{"killing_lockdown", By::kHost, LockdownRules(true)}),
    [](const ::testing::TestParamInfo<Table>& table) { return std::string(table.param.name); });

TEST(Seccomp, LeavesTheInternetsSocketsToWhoMayUseTheLoopback) {
  const std::string program =
      CompileRules(BaseRules(SocketFamilies::kUnixAndInternet), kMark).value();
  // socket() of a family, of no type: AF_UNIX, AF_INET, AF_INET6; then AF_NETLINK and AF_VSOCK.
  EXPECT_THAT(ResultsUnder(program, By::kConfine,
                           {"41,1,99,0", "41,2,99,0", "41,10,99,0", "41,16,99,0", "41,40,99,0"}),
              ::testing::ElementsAre(EINVAL, EINVAL, EINVAL, kMark, kMark));
}

TEST(Seccomp, KnowsNoCallThatIsNewerThanTheReviewedOnes) {
  // 456 is futex_requeue; 457 and 462, statmount and mseal, are newer.
  const std::string program = CompileRules({}).value();
  const auto results = ResultsUnder(program, By::kConfine, {"39", "457", "462", "4095"});
  EXPECT_THAT(results, ::testing::ElementsAre(0, ENOSYS, ENOSYS, ENOSYS));
}

TEST(Seccomp, LetsAlmostEverythingElseThrough) {
  // getpid, read of nothing, futex, membarrier, a stop of nobody, SIGUSR1 to nobody, F_GETFL.
  const auto results = ResultsUnder(CompileRules(LockdownRules(true), kMark).value(), By::kHost,
                                    {"39", "0,0,0,0", "202,2147483392,1,1", "324,0,0",
                                     "62,2147483392,19", "62,2147483392,10", "72,0,3"});
  EXPECT_THAT(results, ::testing::Each(::testing::Ne(kMark)));
  EXPECT_EQ(results.size(), 7u);
}

}  // namespace
}  // namespace assay
