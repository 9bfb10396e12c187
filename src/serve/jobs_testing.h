// A fixture for tests of jobs and leases.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/jobs.h"
#include "serve/leases.h"
#include "serve/serve_testing.h"

namespace assay {

class JobsTest : public ServeTest {
 protected:
  void OpenAgain() override {
    leases_.reset();
    ServeTest::OpenAgain();
    leases_.emplace(*database_, LeaseLimits{});
  }
  Jobs jobs(QueueLimits limits = {}) { return Jobs(*database_, limits); }
  NewJob Ask(const Account& author, const std::string& name = "a.cpp") {
    NewJob asked;
    asked.author = author;
    asked.problem = "softmax";
    asked.name = name;
    asked.source_hash = "source of " + name;
    return asked;
  }
  int64_t Submit(const Account& author, const std::string& name = "a.cpp") {
    return jobs().Submit(Ask(author, name), now_).value().job.id;
  }
  KnownRunner ServersRunner(const std::string& device = "cpu") {
    KnownRunner facts;
    facts.name = "local " + device;
    facts.device = device;
    return leases_->Meet(Accounts(*database_).ServerAccount(now_).value(), facts, true, now_)
        .value();
  }
  // The id of the job that is taken; 0: none.
  int64_t Take() {
    taken_ = leases_->Take(ServersRunner(), now_).value();
    return taken_ ? taken_->job.id : 0;
  }
  JobState StateOf(int64_t id) { return jobs().Find(id).value()->state; }
  std::vector<std::string> EventsOf(int64_t id) {
    std::vector<std::string> bodies;
    const auto events = jobs().Events(id, 0, 100).value();
    for (const JobEvent& event : events) bodies.push_back(event.body);
    return bodies;
  }

  std::optional<Leases> leases_;
  std::optional<LeasedJob> taken_;
};

}  // namespace assay
