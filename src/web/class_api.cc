#include "web/class_api.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "serve/moment.h"
#include "serve/words.h"
#include "web/class_json.h"
#include "web/class_request.h"
#include "web/replies.h"
#include "worklog/certificate.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

ServedReply FileReply(std::string bytes, std::string_view type, const std::string& name) {
  ServedReply reply{200, std::move(bytes), std::string(type)};
  reply.headers.emplace_back("Content-Disposition",
                             fmt::format("attachment; filename=\"{}\"", name));
  return reply;
}

ServedReply ListClasses(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const std::vector<Class> all, room.classes.All());
  Json list = Json::array();
  for (const Class& each : all)
    if (IsMember(*request.account, each)) list.push_back(ClassJson(each, request.now.utc_s));
  return JsonReply({{"classes", std::move(list)}});
}

ServedReply MakeClass(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Json body, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const ClassTerms terms, ReadClassTerms(body, ClassTerms()));
  ASSAY_ASSIGN_OR_REPLY(const Class made, room.classes.Make(terms, request.now));
  return JsonReply({{"class", ClassJson(made, request.now.utc_s)}}, 201);
}

ServedReply ChangeClass(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Class of, ManagedClass(room, request));
  ASSAY_ASSIGN_OR_REPLY(const Json body, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const ClassTerms terms, ReadClassTerms(body, of.terms));
  ASSAY_ASSIGN_OR_REPLY(const Class changed, room.classes.Change(of, terms, request.now));
  return JsonReply({{"class", ClassJson(changed, request.now.utc_s)}});
}

ServedReply ShowClass(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Class of, SeenClass(room, request));
  const bool manages = MayManage(*request.account, of);
  Json json = {{"class", ClassJson(of, request.now.utc_s)},
               {"members", Json::array()},
               {"finals", Json::array()},
               {"awaited", Json::array()}};
  ASSAY_ASSIGN_OR_REPLY(const std::vector<Account> members, room.classes.Members(of.id));
  for (const Account& each : members) json["members"].push_back(AccountJson(each));
  ASSAY_ASSIGN_OR_REPLY(const std::vector<FinalistRow> finals, room.finals.Of(of.id));
  for (const FinalistRow& each : finals) json["finals"].push_back(FinalistJson(each));
  ASSAY_ASSIGN_OR_REPLY(const auto awaited, room.finals.Awaited(of.id));
  for (const auto& [id, name] : awaited) json["awaited"].push_back(name);
  if (!manages) return JsonReply(json);
  ASSAY_ASSIGN_OR_REPLY(const auto invitations, room.classes.Invitations(of.id));
  json["invitations"] = Json::array();
  for (const Invitation& each : invitations)
    json["invitations"].push_back(InvitationJson(each, request.now.utc_s));
  return JsonReply(json);
}

ServedReply AskFinalsAgain(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Class of, ManagedClass(room, request));
  ASSAY_ASSIGN_OR_REPLY(const std::vector<int64_t> jobs, room.finals.AskAgain(of.id, request.now));
  return JsonReply({{"jobs", jobs}});
}

ServedReply Invite(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Class of, ManagedClass(room, request));
  ASSAY_ASSIGN_OR_REPLY(const Json body, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const InvitationTerms terms, ReadInvitationTerms(body));
  ASSAY_ASSIGN_OR_REPLY(const auto made, room.classes.Invite(of, terms, request.now));
  return JsonReply({{"invitation", InvitationJson(made.invitation, request.now.utc_s)},
                    {"code", made.code},
                    {"link", fmt::format("{}/join/{}", request.origin, made.code)}},
                   201);
}

ServedReply Uninvite(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Class of, ManagedClass(room, request));
  const auto id = request.Id("invitation");
  if (!id) return ErrorReply(404, "the class has no such invitation");
  ASSAY_ASSIGN_OR_REPLY(const Invitation ended, room.classes.Revoke(of, *id));
  return JsonReply({{"invitation", InvitationJson(ended, request.now.utc_s)}});
}

ServedReply Join(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Json body, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(const std::string code, TextField(body, "code", true));
  ASSAY_ASSIGN_OR_REPLY(const std::string name, TextField(body, "name", false));
  ASSAY_ASSIGN_OR_REPLY(const Classes::Joined joined, room.classes.Join(code, name, request.now));
  return JsonReply({{"account", AccountJson(joined.account)}, {"token", joined.token}}, 201);
}

ServedReply Sheet(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Class of, ManagedClass(room, request));
  ASSAY_ASSIGN_OR_REPLY(std::string sheet, SheetOfClass(room.parts, of));
  return FileReply(std::move(sheet), "text/csv; charset=utf-8", fmt::format("class-{}.csv", of.id));
}

ServedReply Export(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const Class of, ManagedClass(room, request));
  ASSAY_ASSIGN_OR_REPLY(std::string file, ExportClass(room.parts, of, request.now));
  return FileReply(std::move(file), "application/gzip", fmt::format("class-{}.tar.gz", of.id));
}

ServedReply Import(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const ImportedClass imported,
                        ImportClass(room.parts, request.http.body, *request.account, request.now));
  Json renamed = Json::array();
  for (const auto& [from, to] : imported.renamed) renamed.push_back({{"from", from}, {"to", to}});
  return JsonReply({{"class", ClassJson(imported.made, request.now.utc_s)},
                    {"members", imported.members},
                    {"jobs", imported.jobs},
                    {"worklogs", imported.worklogs},
                    {"renamed", std::move(renamed)}},
                   201);
}

ServedReply ListWorklogs(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const SeenWorklogList seen, SeenWorklogs(room, request));
  Json list = Json::array();
  for (const WorklogEntry& each : seen.entries) list.push_back(WorklogJson(each));
  return JsonReply({{"worklogs", std::move(list)}, {"hidden", seen.hidden}});
}

ServedReply SendWorklog(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const WorklogEntry kept,
                        KeepWorklog(room, *request.account, request.http.body, request.now));
  ASSAY_ASSIGN_OR_REPLY(const Worklogs::Checked checked, room.worklogs.Check(kept));
  return JsonReply({{"worklog", WorklogJson(kept)}, {"findings", FindingsJson(checked.findings)}},
                   201);
}

ServedReply ShowWorklog(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const SeenWorklog seen, FindWorklog(room, request));
  ASSAY_ASSIGN_OR_REPLY(const GradedWorklog graded, room.grades.Graded(seen.entry, seen.of));
  Json json = {{"worklog", WorklogJson(seen.entry)},
               {"findings", FindingsJson(graded.findings)},
               {"complete", graded.complete}};
  if (seen.sees_marks) json["grade"] = GradeJson(graded);
  return JsonReply(json);
}

ServedReply SendTar(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const SeenWorklog seen, FindWorklog(room, request));
  ASSAY_ASSIGN_OR_REPLY(std::string tar, room.worklogs.Tar(seen.entry));
  return FileReply(std::move(tar), "application/x-tar",
                   fmt::format("worklog-{}.tar", seen.entry.id));
}

ServedReply Certify(ClassRoom& room, const ClassDesk& desk, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const SeenWorklog seen, FindWorklog(room, request));
  if (!seen.sees_marks) return ErrorReply(403, "a certificate is for its author and the mentors");
  ASSAY_ASSIGN_OR_REPLY(const GradedWorklog graded, room.grades.Graded(seen.entry, seen.of));
  ASSAY_ASSIGN_OR_REPLY(std::string pdf, CertificateOf(desk, graded));
  return FileReply(std::move(pdf), "application/pdf",
                   fmt::format("certificate-{}.pdf", seen.entry.id));
}

ServedReply GiveMarks(ClassRoom& room, const ClassDesk&, const WebRequest& request) {
  ASSAY_ASSIGN_OR_REPLY(const SeenWorklog seen, FindWorklog(room, request));
  ASSAY_ASSIGN_OR_REPLY(const Json body, ReadJsonObject(request.http.body));
  ASSAY_ASSIGN_OR_REPLY(GivenMarks given, ReadMarks(body));
  ASSAY_ASSIGN_OR_REPLY(const GradedWorklog graded,
                        room.grades.Give(seen.entry, seen.of, std::move(given.marks), given.seen,
                                         *request.account, request.now));
  return JsonReply({{"worklog", WorklogJson(seen.entry)}, {"grade", GradeJson(graded)}});
}

using RoomHandler = ServedReply (*)(ClassRoom&, const ClassDesk&, const WebRequest&);

}  // namespace

ServedReply ErrorReply(const Refusal& refusal) {
  if (refusal.status >= 500) return ErrorReply(Error{ErrorKind::kEnvironment, refusal.why});
  ServedReply reply = ErrorReply(refusal.status, refusal.why);
  if (refusal.retry_after_s > 0)
    reply.headers.emplace_back("Retry-After", std::to_string(refusal.retry_after_s));
  return reply;
}

Granted<std::string> CertificateOf(const ClassDesk& desk, const GradedWorklog& graded) {
  if (!graded.complete)
    return std::unexpected(
        Refusal(409,
                "the worklog is not complete, or something in it is suspicious: a certificate "
                "is for one that the check finds whole"));
  ASSAY_ASSIGN_OR_RETURN(std::string pdf, DrawCertificate(SheetOf(graded.uploaded.worklog,
                                                                  graded.grade, graded.kept.mentor),
                                                          desk.certificate_library));
  return pdf;
}

std::vector<Route> ClassApiRoutes(const ClassDesk& desk) {
  std::vector<Route> routes;
  const auto add = [&](const char* method, const char* pattern, Access access, RoomHandler handler,
                       size_t body_bytes_max = kBodyBytesMax) {
    routes.push_back({method, pattern, access,
                      [&desk, handler](Hall& hall, const WebRequest& request) {
                        ClassRoom room(hall, desk.tars);
                        return handler(room, desk, request);
                      },
                      body_bytes_max});
  };
  add("GET", "/api/classes", Access::kMember, ListClasses);
  add("POST", "/api/classes", Access::kServerMentor, MakeClass);
  add("POST", "/api/classes/import", Access::kServerMentor, Import, kClassFileBytesMax);
  add("GET", "/api/classes/{id}", Access::kMember, ShowClass);
  add("PATCH", "/api/classes/{id}", Access::kMentor, ChangeClass);
  add("POST", "/api/classes/{id}/finals", Access::kMentor, AskFinalsAgain);
  add("POST", "/api/classes/{id}/invitations", Access::kMentor, Invite);
  add("DELETE", "/api/classes/{id}/invitations/{invitation}", Access::kMentor, Uninvite);
  add("GET", "/api/classes/{id}/sheet.csv", Access::kMentor, Sheet);
  add("GET", "/api/classes/{id}/export", Access::kMentor, Export);
  add("POST", "/api/join", Access::kAnyone, Join);
  add("GET", "/api/worklogs", Access::kMember, ListWorklogs);
  add("POST", "/api/worklogs", Access::kMember, SendWorklog, kUploadBytesMax);
  add("GET", "/api/worklogs/{id}", Access::kMember, ShowWorklog);
  add("GET", "/api/worklogs/{id}/tar", Access::kMember, SendTar);
  add("GET", "/api/worklogs/{id}/certificate.pdf", Access::kMember, Certify);
  add("POST", "/api/worklogs/{id}/grade", Access::kMentor, GiveMarks);
  return routes;
}

}  // namespace assay
