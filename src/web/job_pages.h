// Jobs: the queue, and one job with its events as they come. Pure.
#pragma once

#include <string>
#include <vector>

#include "serve/types.h"
#include "web/layout.h"

namespace assay {

struct JobsView {
  std::vector<Job> jobs;  // newest first
  int64_t queued = 0, running = 0;
  int64_t runners = 0;          // that are there
  int64_t for_nobody = 0;       // of the queue: no runner that is there takes them
  bool own_alone = false;       // the list has the viewer's jobs alone
  std::string older_than = {};  // the id from which an older page goes on; empty: none
};

std::string RenderJobsPage(const JobsView& view, PageFrame frame);

// An event of a worker about a job.
struct JobEventLine {
  int64_t number = 0;
  std::string time;          // ISO 8601, UTC
  std::string event, stage;  // "progress", "speed"
  std::string text;
  double fraction = -1;  // of the stage; negative: it tells none
};

struct JobView {
  Job job;
  std::vector<JobEventLine> events;  // oldest first; the last ones
  bool may_cancel = false;
  bool for_nobody = false;  // no runner that is there takes it
};

std::string RenderJobPage(const JobView& view, PageFrame frame);

std::string_view JobKindText(JobKind kind);  // "judgement"

}  // namespace assay
