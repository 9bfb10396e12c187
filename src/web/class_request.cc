#include "web/class_request.h"

#include <charconv>

namespace assay {
namespace {

Refusal NoClass() { return Refusal(404, "there is no such class"); }
Refusal NoWorklog() { return Refusal(404, "there is no such worklog"); }

}  // namespace

Granted<Class> SeenClass(ClassRoom& room, const WebRequest& request) {
  const auto id = request.Id("id");
  if (!id) return std::unexpected(NoClass());
  ASSAY_ASSIGN_OR_RETURN(auto found, room.classes.Find(*id));
  if (!found || !request.account || !IsMember(*request.account, *found))
    return std::unexpected(NoClass());
  return std::move(*found);
}

Granted<Class> ManagedClass(ClassRoom& room, const WebRequest& request) {
  ASSAY_ASSIGN_OR_RETURN(Class of, SeenClass(room, request));
  if (!MayManage(*request.account, of))
    return std::unexpected(Refusal(403, "only a mentor of the class may do this"));
  return of;
}

Granted<SeenWorklog> FindWorklog(ClassRoom& room, const WebRequest& request) {
  const auto id = request.Id("id");
  if (!id || !request.account) return std::unexpected(NoWorklog());
  const Account& viewer = *request.account;
  ASSAY_ASSIGN_OR_RETURN(auto found, room.worklogs.Find(*id));
  if (!found) return std::unexpected(NoWorklog());
  ASSAY_ASSIGN_OR_RETURN(Class of, room.ClassOf(found->class_id));
  if (!MaySeeWorklog(viewer, *found, of, request.now.utc_s))
    return std::unexpected(
        IsMember(viewer, of)
            ? Refusal(403, "worklogs of others are hidden until the deadline of the class")
            : NoWorklog());
  const bool manages = MayManage(viewer, of);
  const bool sees_marks = manages || viewer.id == found->author.id;
  return SeenWorklog{std::move(*found), std::move(of), sees_marks, manages};
}

Result<SeenWorklogList> SeenWorklogs(ClassRoom& room, const WebRequest& request) {
  const Account& viewer = *request.account;
  const std::string asked = request.Query("class");
  SeenWorklogList seen;
  seen.class_id = viewer.class_id;
  std::vector<int64_t> classes{viewer.class_id};
  if (viewer.ManagesServer()) {
    std::from_chars(asked.data(), asked.data() + asked.size(), seen.class_id);
    classes = {seen.class_id};
    if (seen.class_id == 0) {
      ASSAY_ASSIGN_OR_RETURN(const std::vector<Class> all, room.classes.All());
      for (const Class& each : all) classes.push_back(each.id);
    }
  }
  for (const int64_t class_id : classes) {
    ASSAY_ASSIGN_OR_RETURN(const Class of, room.ClassOf(class_id));
    ASSAY_ASSIGN_OR_RETURN(std::vector<WorklogEntry> entries, room.worklogs.OfClass(class_id));
    for (WorklogEntry& each : entries) {
      if (MaySeeWorklog(viewer, each, of, request.now.utc_s))
        seen.entries.push_back(std::move(each));
      else
        seen.hidden += class_id != 0;
    }
  }
  return seen;
}

Granted<WorklogEntry> KeepWorklog(ClassRoom& room, const Account& author, std::string_view tar,
                                  Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const Class of, room.ClassOf(author.class_id));
  // It costs nothing to tell who is late.
  if (auto late = RefuseLate(of, "worklog", now.utc_s)) return std::unexpected(std::move(*late));
  ASSAY_ASSIGN_OR_RETURN(std::vector<TarFile> files, room.tars.Read(tar, kUploadLimits));
  ASSAY_ASSIGN_OR_RETURN(files, FilesOfWorklog(std::move(files)));
  ASSAY_ASSIGN_OR_RETURN(const UploadedWorklog uploaded, ReadUploadedWorklog(files));
  return room.worklogs.Keep(author, of, files, uploaded, now);
}

}  // namespace assay
