#include "web/class_site.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/hash.h"
#include "serve/moment.h"
#include "serve/words.h"
#include "web/class_pages.h"
#include "web/class_request.h"
#include "web/entry_pages.h"
#include "web/replies.h"
#include "web/site.h"
#include "worklog/page.h"

namespace assay {
namespace {

struct Asked {
  ClassRoom& room;
  const WebRequest& request;
  PageFrame frame;
};

ServedReply Page(std::string html, int status = 200) {
  return {status, std::move(html), "text/html; charset=utf-8"};
}

ServedReply RefusalPage(const Refusal& refusal, const Asked& asked) {
  ServedReply reply =
      Page(RenderErrorPage({refusal.status, refusal.why, static_cast<int>(refusal.retry_after_s)},
                           asked.frame),
           refusal.status);
  if (refusal.retry_after_s > 0)
    reply.headers.emplace_back("Retry-After", std::to_string(refusal.retry_after_s));
  return reply;
}

Result<int64_t> FormNumber(const WebRequest& request, const std::string& name) {
  const std::string text = request.Form(name);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return UsageError(fmt::format("{} must be a whole number", name));
  return number;
}

Granted<std::string> ClassListPage(Asked& asked, const std::string& fault) {
  ClassListView view{{}, false, fault, asked.request.now.utc_s};
  ASSAY_ASSIGN_OR_RETURN(view.classes, asked.room.classes.All());
  const Account& viewer = *asked.request.account;
  std::erase_if(view.classes, [&](const Class& each) { return !IsMember(viewer, each); });
  view.may_make = viewer.ManagesServer();
  return RenderClassList(view, asked.frame);
}

Granted<ServedReply> ListClasses(Asked& asked) {
  ASSAY_ASSIGN_OR_RETURN(std::string html, ClassListPage(asked, ""));
  return Page(std::move(html));
}

Granted<Class> MadeClass(Asked& asked) {
  const WebRequest& request = asked.request;
  ClassTerms terms;
  terms.name = request.Form("name");
  if (const std::string deadline = request.Form("deadline"); !deadline.empty()) {
    ASSAY_ASSIGN_OR_RETURN(terms.deadline_s, ParseMoment(deadline));
  }
  ASSAY_ASSIGN_OR_RETURN(terms.jobs_a_day, FormNumber(request, "jobs_a_day"));
  return asked.room.classes.Make(terms, request.now);
}

Granted<ServedReply> MakeClass(Asked& asked) {
  const auto made = MadeClass(asked);
  if (made) return Redirect(fmt::format("/classes/{}", made->id));
  if (made.error().status != 400) return std::unexpected(made.error());
  ASSAY_ASSIGN_OR_RETURN(std::string html, ClassListPage(asked, made.error().why));
  return Page(std::move(html), 400);
}

Granted<ServedReply> ClassPage(Asked& asked, const std::string& new_link,
                               const std::string& fault) {
  ClassRoom& room = asked.room;
  ClassView view;
  view.now_s = asked.request.now.utc_s;
  view.new_link = new_link;
  view.fault = fault;
  ASSAY_ASSIGN_OR_RETURN(view.of, SeenClass(room, asked.request));
  view.manages = MayManage(*asked.request.account, view.of);
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Account> members, room.classes.Members(view.of.id));
  ASSAY_ASSIGN_OR_RETURN(const auto worklogs, room.worklogs.OfClass(view.of.id));
  ASSAY_ASSIGN_OR_RETURN(const auto jobs, room.classes.JobCounts(view.of.id));
  for (const Account& each : members) {
    const auto count = jobs.find(each.id);
    MemberRow row{each, count == jobs.end() ? 0 : count->second, 0};
    for (const WorklogEntry& entry : worklogs) row.worklogs += entry.author.id == each.id;
    view.members.push_back(std::move(row));
  }
  ASSAY_ASSIGN_OR_RETURN(view.finals, room.finals.Of(view.of.id));
  ASSAY_ASSIGN_OR_RETURN(const auto awaited, room.finals.Awaited(view.of.id));
  for (const auto& [id, name] : awaited) view.awaited.push_back(name);
  if (view.manages) {
    ASSAY_ASSIGN_OR_RETURN(view.invitations, room.classes.Invitations(view.of.id));
  }
  return Page(RenderClassOverview(view, asked.frame), fault.empty() ? 200 : 400);
}

Granted<ServedReply> ShowClass(Asked& asked) { return ClassPage(asked, "", ""); }

Granted<Classes::NewInvitation> Invited(Asked& asked) {
  const WebRequest& request = asked.request;
  ASSAY_ASSIGN_OR_RETURN(const Class of, ManagedClass(asked.room, request));
  InvitationTerms terms;
  terms.role = RoleFromName(request.Form("role")).value_or(Role::kStudent);
  terms.account = request.Form("for");
  ASSAY_ASSIGN_OR_RETURN(terms.uses, FormNumber(request, "uses"));
  ASSAY_ASSIGN_OR_RETURN(terms.lasts_s, ParseDuration(request.Form("lasts")));
  return asked.room.classes.Invite(of, terms, request.now);
}

Granted<ServedReply> Invite(Asked& asked) {
  const auto made = Invited(asked);
  if (made)
    return ClassPage(asked, fmt::format("{}/join/{}", asked.request.origin, made->code), "");
  if (made.error().status == 403) return std::unexpected(made.error());
  return ClassPage(asked, "", made.error().why);
}

Granted<Class> Moved(Asked& asked) {
  ASSAY_ASSIGN_OR_RETURN(const Class of, ManagedClass(asked.room, asked.request));
  ClassTerms terms = of.terms;
  ASSAY_ASSIGN_OR_RETURN(terms.deadline_s, ParseMoment(asked.request.Form("deadline")));
  return asked.room.classes.Change(of, terms, asked.request.now);
}

Granted<Class> Closed(Asked& asked) {
  ASSAY_ASSIGN_OR_RETURN(const Class of, ManagedClass(asked.room, asked.request));
  if (asked.request.Form("sure") != "yes")
    return std::unexpected(Refusal(400, "say that you are sure: closing cannot be undone"));
  return asked.room.classes.Close(of, asked.request.now);
}

// The page of the class again: changed, or with the reason why not.
Granted<ServedReply> AfterChange(Asked& asked, const Granted<Class>& changed) {
  if (changed) return Redirect(fmt::format("/classes/{}", changed->id));
  if (changed.error().status == 403 || changed.error().status == 404)
    return std::unexpected(changed.error());
  return ClassPage(asked, "", changed.error().why);
}

Granted<ServedReply> MoveDeadline(Asked& asked) { return AfterChange(asked, Moved(asked)); }

Granted<ServedReply> CloseClass(Asked& asked) { return AfterChange(asked, Closed(asked)); }

Granted<ServedReply> AskFinalsAgain(Asked& asked) {
  ASSAY_ASSIGN_OR_RETURN(const Class of, ManagedClass(asked.room, asked.request));
  ASSAY_RETURN_IF_ERROR(asked.room.finals.AskAgain(of.id, asked.request.now));
  return Redirect(fmt::format("/classes/{}", of.id));
}

Granted<ServedReply> Uninvite(Asked& asked) {
  ASSAY_ASSIGN_OR_RETURN(const Class of, ManagedClass(asked.room, asked.request));
  ASSAY_RETURN_IF_ERROR(asked.room.classes.Revoke(of, asked.request.Id("invitation").value_or(0)));
  return Redirect(fmt::format("/classes/{}", of.id));
}

Granted<ServedReply> ShowSheet(Asked& asked) {
  SheetView view;
  ASSAY_ASSIGN_OR_RETURN(view.of, ManagedClass(asked.room, asked.request));
  ASSAY_ASSIGN_OR_RETURN(view.rubric, RubricOf(view.of));
  ASSAY_ASSIGN_OR_RETURN(const auto entries, asked.room.worklogs.OfClass(view.of.id));
  ASSAY_ASSIGN_OR_RETURN(view.without, asked.room.classes.Members(view.of.id));
  for (const WorklogEntry& entry : entries) {
    ASSAY_ASSIGN_OR_RETURN(GradedWorklog graded, asked.room.grades.Graded(entry, view.of));
    view.graded.push_back(std::move(graded));
    std::erase_if(view.without, [&](const Account& each) { return each.id == entry.author.id; });
  }
  std::erase_if(view.without, [](const Account& each) { return each.role != Role::kStudent; });
  ASSAY_ASSIGN_OR_RETURN(view.work,
                         WorkOfMembers(asked.room.parts.database, asked.room.finals, view.of.id));
  return Page(RenderSheetPage(view, asked.frame));
}

Granted<ServedReply> WorklogsPage(Asked& asked, const Refusal* fault) {
  const Account& viewer = *asked.request.account;
  WorklogListView view;
  if (fault != nullptr) view.fault = fault->why;
  view.may_send = true;
  ASSAY_ASSIGN_OR_RETURN(const SeenWorklogList seen, SeenWorklogs(asked.room, asked.request));
  view.class_id = seen.class_id;
  view.hidden = seen.hidden;
  if (view.class_id != 0) {
    ASSAY_ASSIGN_OR_RETURN(const Class shown, asked.room.ClassOf(view.class_id));
    view.class_name = shown.terms.name;
  }
  for (const WorklogEntry& entry : seen.entries) {
    ASSAY_ASSIGN_OR_RETURN(const Class of, asked.room.ClassOf(entry.class_id));
    WorklogRow row{entry};
    if (view.class_id == 0 && entry.class_id != 0) row.class_name = of.terms.name;
    if (MayManage(viewer, of) || entry.author.id == viewer.id) {
      ASSAY_ASSIGN_OR_RETURN(const GradedWorklog graded, asked.room.grades.Graded(entry, of));
      row.mark = graded.grade.mark;
      row.points = graded.grade.points;
      row.marked = graded.kept.revision > 0;
      row.suspicious = !graded.grade.suspicious.empty() && !graded.grade.lifted;
    }
    view.rows.push_back(std::move(row));
  }
  return Page(RenderWorklogList(view, asked.frame), fault == nullptr ? 200 : fault->status);
}

Granted<ServedReply> ListWorklogs(Asked& asked) { return WorklogsPage(asked, nullptr); }

Granted<ServedReply> SendWorklog(Asked& asked) {
  const WebRequest& request = asked.request;
  const std::string tar = request.files.empty() ? "" : request.files.front().content;
  const auto kept = KeepWorklog(asked.room, *request.account, tar, request.now);
  if (kept) return Redirect(fmt::format("/worklogs/{}", kept->id));
  return WorklogsPage(asked, &kept.error());
}

Granted<ServedReply> WorklogPage(Asked& asked, const Marks& sent, const Refusal* fault) {
  WorklogGradeView view;
  ASSAY_ASSIGN_OR_RETURN(const SeenWorklog seen, FindWorklog(asked.room, asked.request));
  ASSAY_ASSIGN_OR_RETURN(view.graded, asked.room.grades.Graded(seen.entry, seen.of));
  view.of = seen.of;
  view.sees_marks = seen.sees_marks;
  view.manages = seen.manages;
  if (fault != nullptr) {
    view.sent = sent;
    view.fault = fault->why;
  }
  if (seen.manages) {
    ASSAY_ASSIGN_OR_RETURN(view.earlier, asked.room.grades.All(seen.entry.id));
    if (!view.earlier.empty()) view.earlier.pop_back();
  }
  return Page(RenderWorklogGrading(view, asked.frame), fault == nullptr ? 200 : fault->status);
}

Granted<ServedReply> ShowWorklog(Asked& asked) { return WorklogPage(asked, {}, nullptr); }

// The form's marks: a field "points.KEY" that is empty takes the points of the evidence.
Result<Marks> FormMarks(const WebRequest& request) {
  constexpr std::string_view kPrefix = "points.";
  Marks marks;
  marks.note = request.Form("note");
  marks.lifted = request.Form("lift");
  for (const auto& [name, value] : request.form) {
    if (!name.starts_with(kPrefix) || value.empty()) continue;
    char* end = nullptr;
    const double points = std::strtod(value.c_str(), &end);
    if (*end != '\0' || !std::isfinite(points))
      return UsageError(fmt::format("\"{}\" is no number of points", value));
    marks.points[name.substr(kPrefix.size())] = points;
  }
  return marks;
}

Granted<ServedReply> GiveMarks(Asked& asked) {
  const WebRequest& request = asked.request;
  ASSAY_ASSIGN_OR_RETURN(const SeenWorklog seen, FindWorklog(asked.room, request));
  ASSAY_ASSIGN_OR_RETURN(const Marks marks, FormMarks(request));
  SeenWorklogState state;
  ASSAY_ASSIGN_OR_RETURN(state.revision, FormNumber(request, "revision"));
  ASSAY_ASSIGN_OR_RETURN(state.upload, FormNumber(request, "upload"));
  const auto given =
      asked.room.grades.Give(seen.entry, seen.of, marks, state, *request.account, request.now);
  if (given) return Redirect(fmt::format("/worklogs/{}", seen.entry.id));
  return WorklogPage(asked, marks, &given.error());
}

// The report as `assay worklog render` writes it: a page that stands alone, with a style of its
// own, which the policy of all pages names.
Granted<ServedReply> ShowReport(Asked& asked) {
  ASSAY_ASSIGN_OR_RETURN(const SeenWorklog seen, FindWorklog(asked.room, asked.request));
  ASSAY_ASSIGN_OR_RETURN(const Worklogs::Checked checked, asked.room.worklogs.Check(seen.entry));
  const UploadedWorklog& uploaded = checked.uploaded;
  return Page(RenderWorklogPage(uploaded.worklog, PageKind::kReport, Sha256Hex(uploaded.rendered)));
}

Granted<ServedReply> ShowJoin(Asked& asked) {
  const std::string code = asked.request.captures.at("code");
  const auto invitation = asked.room.classes.OfCode(code, asked.request.now);
  if (!invitation) {
    JoinView over;
    over.is_over = true;
    return Page(RenderJoinPage(over, asked.frame), invitation.error().status);
  }
  ASSAY_ASSIGN_OR_RETURN(const Class of, asked.room.ClassOf(invitation->class_id));
  JoinView view{code, of.terms.name, "", "", false};
  if (invitation->account != 0) {
    ASSAY_ASSIGN_OR_RETURN(const auto account, asked.room.accounts.Find(invitation->account));
    if (account) view.name = account->name;
  }
  return Page(RenderJoinPage(view, asked.frame));
}

Granted<ServedReply> Join(Asked& asked) {
  const WebRequest& request = asked.request;
  const std::string code = request.captures.at("code"), name = request.Form("name");
  ASSAY_ASSIGN_OR_RETURN(const Invitation invitation, asked.room.classes.OfCode(code, request.now));
  const auto joined = asked.room.classes.Join(code, name, request.now);
  if (!joined) {
    ASSAY_ASSIGN_OR_RETURN(const Class of, asked.room.ClassOf(invitation.class_id));
    return Page(RenderJoinPage({code, of.terms.name, name, joined.error().why, false}, asked.frame),
                joined.error().status);
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string session,
                         asked.room.accounts.IssueSession(joined->account.id, request.now));
  asked.frame.viewer = {joined->account, CsrfTokenOf(session)};
  ServedReply reply = Page(RenderWelcomePage(joined->account.name, joined->token, asked.frame));
  reply.headers.push_back(SessionCookie(session, request.is_secure));
  reply.headers.emplace_back("Cache-Control", "no-store");
  return reply;
}

using PageHandler = Granted<ServedReply> (*)(Asked&);

}  // namespace

std::vector<Route> ClassPageRoutes(const ClassDesk& desk, FrameFor frame) {
  std::vector<Route> routes;
  const auto add = [&](const char* method, const char* pattern, Access access,
                       PageHandler handler) {
    routes.push_back({method, pattern, access,
                      [&desk, frame, handler](Hall& hall, const WebRequest& request) {
                        ClassRoom room(hall, desk.tars);
                        Asked asked{room, request, frame(request)};
                        auto reply = handler(asked);
                        return reply ? std::move(*reply) : RefusalPage(reply.error(), asked);
                      },
                      kBodyBytesMax});
  };
  add("GET", "/classes", Access::kMember, ListClasses);
  add("POST", "/classes", Access::kServerMentor, MakeClass);
  add("GET", "/classes/{id}", Access::kMember, ShowClass);
  add("GET", "/classes/{id}/sheet", Access::kMentor, ShowSheet);
  add("POST", "/classes/{id}/deadline", Access::kMentor, MoveDeadline);
  add("POST", "/classes/{id}/close", Access::kMentor, CloseClass);
  add("POST", "/classes/{id}/finals", Access::kMentor, AskFinalsAgain);
  add("POST", "/classes/{id}/invitations", Access::kMentor, Invite);
  add("POST", "/classes/{id}/invitations/{invitation}/end", Access::kMentor, Uninvite);
  add("GET", "/join/{code}", Access::kAnyone, ShowJoin);
  add("POST", "/join/{code}", Access::kAnyone, Join);
  add("GET", "/worklogs", Access::kMember, ListWorklogs);
  add("POST", "/worklogs", Access::kMember, SendWorklog);
  add("GET", "/worklogs/{id}", Access::kMember, ShowWorklog);
  add("GET", "/worklogs/{id}/report", Access::kMember, ShowReport);
  add("POST", "/worklogs/{id}/grade", Access::kMentor, GiveMarks);
  return routes;
}

}  // namespace assay
