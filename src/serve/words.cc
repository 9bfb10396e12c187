#include "serve/words.h"

#include <array>
#include <utility>

namespace assay {
namespace {

template <typename Word, size_t kCount>
using Names = std::array<std::pair<Word, std::string_view>, kCount>;

constexpr Names<Role, 3> kRoles{
    {{Role::kMentor, "mentor"}, {Role::kStudent, "student"}, {Role::kMachine, "machine"}}};
constexpr Names<JobKind, 4> kKinds{{{JobKind::kJudge, "judge"},
                                    {JobKind::kCompare, "compare"},
                                    {JobKind::kFinalist, "finalist"},
                                    {JobKind::kSpotCheck, "spot_check"}}};
constexpr Names<JobState, 5> kStates{{{JobState::kQueued, "queued"},
                                      {JobState::kRunning, "running"},
                                      {JobState::kDone, "done"},
                                      {JobState::kFailed, "failed"},
                                      {JobState::kCancelled, "cancelled"}}};

template <typename Word, size_t kCount>
std::string_view NameIn(const Names<Word, kCount>& names, Word word) {
  for (const auto& [each, name] : names)
    if (each == word) return name;
  return {};
}

template <typename Word, size_t kCount>
std::optional<Word> WordIn(const Names<Word, kCount>& names, std::string_view name) {
  for (const auto& [word, each] : names)
    if (each == name) return word;
  return std::nullopt;
}

}  // namespace

std::string_view RoleName(Role role) { return NameIn(kRoles, role); }
std::optional<Role> RoleFromName(std::string_view name) { return WordIn(kRoles, name); }
std::string_view JobKindName(JobKind kind) { return NameIn(kKinds, kind); }
std::optional<JobKind> JobKindFromName(std::string_view name) { return WordIn(kKinds, name); }
std::string_view JobStateName(JobState state) { return NameIn(kStates, state); }
std::optional<JobState> JobStateFromName(std::string_view name) { return WordIn(kStates, name); }

}  // namespace assay
