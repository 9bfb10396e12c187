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
// All that the account may read: of its class (a mentor of the server: of the query's "class"), or
// its own.
Result<std::vector<WorklogEntry>> SeenWorklogs(ClassRoom& room, const WebRequest& request);

// Takes a tar that was sent. Refusals: 400 no worklog, or a changed one; 403, 429 as
// Worklogs::Keep.
Granted<WorklogEntry> KeepWorklog(ClassRoom& room, const Account& author, std::string_view tar,
                                  Instant now);

}  // namespace assay
