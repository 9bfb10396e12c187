// Requests about classes and worklogs: what the account may see of what it asks for.
#pragma once

#include <string>
#include <vector>

#include "serve/class_room.h"
#include "web/route.h"

namespace assay {

// The class of the capture "id", for a member. Refusals: 404, for strangers too.
Granted<Class> SeenClass(ClassRoom& room, const WebRequest& request);
// Likewise, for a mentor of it. Refusals: 404; 403 a member, but no mentor.
Granted<Class> ManagedClass(ClassRoom& room, const WebRequest& request);

struct SeenWorklog {
  WorklogEntry entry;
  Class of;
  bool sees_marks = false;  // the author, and mentors
  bool manages = false;
};
// The worklog of the capture "id". Refusals: 404; 403 it is hidden until the deadline.
Granted<SeenWorklog> FindWorklog(ClassRoom& room, const WebRequest& request);
struct SeenWorklogList {
  std::vector<WorklogEntry> entries;
  int64_t class_id = 0;  // that they are of; 0: of all, or of none
  int64_t hidden = 0;    // of the class, that the account may not read yet
};
// All that the account may read: of its class, or its own. A mentor of the server reads those of
// the query's "class", or of all classes.
Result<SeenWorklogList> SeenWorklogs(ClassRoom& room, const WebRequest& request);

// Takes a tar that was sent. Refusals: 400 no worklog, or a changed one; 403, 429 as
// Worklogs::Keep.
Granted<WorklogEntry> KeepWorklog(ClassRoom& room, const Account& author, std::string_view tar,
                                  Instant now);

}  // namespace assay
