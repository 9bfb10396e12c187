// The words of the server: accounts, jobs, and entries of the board.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace assay {

enum class Role { kMentor, kStudent, kMachine };  // a model plays with an account of its own

struct Account {
  int64_t id = 0;
  std::string name;
  Role role = Role::kStudent;
  int64_t class_id = 0;  // 0: none

  // A mentor who joined a class manages that class alone.
  bool ManagesServer() const { return role == Role::kMentor && class_id == 0; }
};

enum class JobKind { kJudge, kCompare, kFinalist, kSpotCheck };
enum class JobState { kQueued, kRunning, kDone, kFailed, kCancelled };  // the last three: terminal

struct Job {
  int64_t id = 0;
  JobKind kind = JobKind::kJudge;
  JobState state = JobState::kQueued;
  Account author;
  std::string problem, size;
  std::map<std::string, std::string> set;
  std::string name;                        // of the candidate's file
  std::string source_hash, opponent_hash;  // blobs of the archive; opponent_hash empty: none
  std::string made, ended;                 // ISO 8601, UTC
  int64_t place = 0;                       // in the queue, from 1; 0: not queued
  int attempts = 0;
  std::string runner;            // that has or had it
  bool own_runner = false;       // it is the author's own: no mentor promoted it
  std::string outcome, verdict;  // of a verdict; its id
  std::string failure;           // why it ended without a verdict
};

// One judged candidate, from the archive.
struct BoardEntry {
  int64_t sequence = 0, job = 0;
  std::string verdict, problem, size, gpu_or_cpu, precision, form, author;
  Role role = Role::kStudent;
  std::string outcome;
  double speedup = 0, ci_low = 0, ci_high = 0, time_ns = 0, percent_of_peak = 0;
  std::string time, source_hash, runner;
  bool foul = false;
};

}  // namespace assay
