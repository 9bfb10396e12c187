// The jobs and finals of a class's members, for its grading sheet.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "serve/finals.h"

namespace assay {

struct MemberWork {
  int64_t jobs = 0;                 // that the member asked for
  int64_t correct = 0, faster = 0;  // problems, by verdicts that count
  std::vector<FinalistRow> finals;
};

// By the account's id; members without a job are left out. As the board was brought up to last.
// Verdicts of a member's own runner, and those at constants of one's own, count nowhere.
Result<std::map<int64_t, MemberWork>> WorkOfMembers(Database& database, Finals& finals,
                                                    int64_t class_id);

// "softmax small 1.31x [1.28x, 1.35x]", or why there is no speed; problems by semicolons. A final
// with which a spot check disagreed says so.
std::string FinalsText(const MemberWork& work);

}  // namespace assay
