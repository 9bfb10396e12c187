#include "cli/class_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/print.h"
#include "report/text.h"
#include "runner/server_link.h"
#include "sandbox/sandbox.h"
#include "serve/class_file.h"
#include "serve/worklog_upload.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRubricBytesMax = 1 << 20;
constexpr double kLongSeconds = 600;  // a whole class

int Ended(const Result<int>& code) { return code ? *code : ReportError(code.error()); }

Result<std::string> Call(const ServerPlace& place, const ServerCall& call) {
  ASSAY_ASSIGN_OR_RETURN(std::string url, ParseServerUrl(place.server));
  ASSAY_ASSIGN_OR_RETURN(ApiKey token, ReadServerToken(place.token_file));
  const ServerLink link(std::move(url), std::move(token), MakeHttpClient());
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  ServerReply reply = link.Call(call, StopToken(interrupted));
  if (reply.kind != ServerReply::Kind::kDone) return std::unexpected(std::move(reply.error));
  return std::move(reply.body);
}

Result<std::string> Post(const ServerPlace& place, const std::string& path, const Json& body) {
  return Call(place, {.method = "POST",
                      .path = path,
                      .body = body.dump(-1, ' ', false, Json::error_handler_t::replace),
                      .headers = {"content-type: application/json"}});
}

Result<Json> Parsed(const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object())
    return EnvironmentError("the server's reply is no JSON object: is this an assay serve?");
  return json;
}

// A text of the reply as a terminal may show it; empty: it is missing.
std::string Said(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? Printable(found->get<std::string>(), true)
                                                   : std::string();
}

int64_t NumberOf(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

Json Part(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? Json() : *found;
}

std::string LinkText(const Json& reply) {
  const Json invitation = Part(reply, "invitation");
  return fmt::format("{}\nfor {}, until {}; the link is shown once\n", Said(reply, "link"),
                     Counted(NumberOf(invitation, "uses"), Said(invitation, "role")),
                     Said(invitation, "ends"));
}

Result<int> Make(const ClassMakeOptions& options) {
  Json body = {{"name", options.name},
               {"jobs_a_day", options.jobs_a_day},
               {"worklogs_a_day", options.worklogs_a_day}};
  if (!options.deadline.empty()) body["deadline"] = options.deadline;
  if (!options.rubric.empty()) {
    ASSAY_ASSIGN_OR_RETURN(body["rubric"], ReadFile(options.rubric, kRubricBytesMax));
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string made, Post(options.place, "/api/classes", body));
  ASSAY_ASSIGN_OR_RETURN(Json reply, Parsed(made));
  const Json of = Part(reply, "class");
  const int64_t id = NumberOf(of, "id");
  std::string text = fmt::format("class {}: {}\n", id, Said(of, "name"));
  if (const std::string deadline = Said(of, "deadline"); !deadline.empty())
    text += fmt::format("deadline {}\n", deadline);
  if (options.students > 0) {
    ASSAY_ASSIGN_OR_RETURN(const std::string invited,
                           Post(options.place, fmt::format("/api/classes/{}/invitations", id),
                                {{"uses", options.students}}));
    ASSAY_ASSIGN_OR_RETURN(const Json invitation, Parsed(invited));
    text += LinkText(invitation);
    reply.update(invitation);
  }
  Print(options.json ? reply.dump() + "\n" : text);
  if (!options.json && options.students == 0)
    Print(fmt::format("next: assay class invite {} --uses 30 --server {}\n", id,
                      ShellQuoted(options.place.server)));
  return kExitGood;
}

Result<int> Invite(const ClassInviteOptions& options) {
  Json body = {{"role", options.role}, {"uses", options.uses}, {"lasts", options.lasts}};
  if (!options.member.empty()) body["for"] = options.member;
  ASSAY_ASSIGN_OR_RETURN(
      const std::string invited,
      Post(options.place, fmt::format("/api/classes/{}/invitations", options.id), body));
  ASSAY_ASSIGN_OR_RETURN(const Json reply, Parsed(invited));
  Print(options.json ? reply.dump() + "\n" : LinkText(reply));
  return kExitGood;
}

Result<int> Show(const ClassShowOptions& options) {
  const std::string path =
      options.id == 0 ? "/api/classes" : fmt::format("/api/classes/{}", options.id);
  ASSAY_ASSIGN_OR_RETURN(const std::string body, Call(options.place, {.path = path}));
  ASSAY_ASSIGN_OR_RETURN(const Json reply, Parsed(body));
  Print(reply.dump(1) + "\n");
  return kExitGood;
}

Result<int> Sheet(const ClassSheetOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(
      const std::string csv,
      Call(options.place, {.path = fmt::format("/api/classes/{}/sheet.csv", options.id)}));
  if (options.out.empty()) {
    Print(csv);
    return kExitGood;
  }
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(options.out, csv));
  Print(fmt::format("wrote {}\n", options.out));
  return kExitGood;
}

Result<int> Export(const ClassExportOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(
      const std::string file,
      Call(options.place,
           {.path = fmt::format("/api/classes/{}/export", options.id), .total_s = kLongSeconds}));
  const std::string out =
      options.out.empty() ? fmt::format("class-{}.tar.gz", options.id) : options.out;
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(out, file));
  Print(fmt::format("wrote {} ({})\n", out, FormatBytes(static_cast<double>(file.size()))));
  return kExitGood;
}

Result<int> Import(const ClassImportOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(std::string file, ReadFile(options.file, kClassFileBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const std::string imported,
                         Call(options.place, {.method = "POST",
                                              .path = "/api/classes/import",
                                              .body = std::move(file),
                                              .headers = {"content-type: application/gzip"},
                                              .total_s = kLongSeconds}));
  ASSAY_ASSIGN_OR_RETURN(const Json reply, Parsed(imported));
  if (options.json) {
    Print(reply.dump() + "\n");
    return kExitGood;
  }
  const Json of = Part(reply, "class");
  Print(fmt::format("class {}: {}, with {}, {} and {}\n", NumberOf(of, "id"), Said(of, "name"),
                    Counted(NumberOf(reply, "members"), "member"),
                    Counted(NumberOf(reply, "jobs"), "job"),
                    Counted(NumberOf(reply, "worklogs"), "worklog")));
  for (const Json& each : Part(reply, "renamed"))
    Print(fmt::format("the name {} was taken: {}\n", Said(each, "from"), Said(each, "to")));
  Print(fmt::format("next: assay class invite {} --for NAME --server {}\n", NumberOf(of, "id"),
                    ShellQuoted(options.place.server)));
  return kExitGood;
}

Result<int> PrintFindings(const Json& reply, bool json) {
  bool missing = false, grave = false;
  std::string text;
  for (const Json& each : Part(reply, "findings")) {
    const std::string kind = Said(each, "kind"), next = Said(each, "next");
    missing |= kind == "missing";
    grave |= kind == "changed" || kind == "suspicious";
    text += fmt::format("  {:<10} {}\n", kind, Said(each, "text"));
    if (!next.empty()) text += fmt::format("             {}\n", next);
  }
  if (json) {
    Print(reply.dump() + "\n");
  } else {
    const Json kept = Part(reply, "worklog");
    Print(fmt::format("worklog {} of {}, upload {}\n", NumberOf(kept, "id"), Said(kept, "problem"),
                      NumberOf(kept, "uploads")));
    Print(text);
    if (!missing && !grave) Print("complete\n");
  }
  return grave ? kExitWrong : missing ? kExitNotFaster : kExitGood;
}

Result<int> Submit(const WorklogSubmitOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  ASSAY_ASSIGN_OR_RETURN(const TarLibrary tars,
                         TarLibrary::Open((std::filesystem::path(support) / "tar.so").string()));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<TarFile> files, FilesOfWorklogFolder(options.folder));
  ASSAY_ASSIGN_OR_RETURN(std::string tar, tars.Write(files, TarForm::kGzip));
  if (tar.size() > kUploadBytesMax)
    return UsageError(fmt::format(
        "the worklog has {} when it is packed, and a server takes {}: leave large files out",
        FormatBytes(static_cast<double>(tar.size())),
        FormatBytes(static_cast<double>(kUploadBytesMax))));
  ASSAY_ASSIGN_OR_RETURN(const std::string sent,
                         Call(options.place, {.method = "POST",
                                              .path = "/api/worklogs",
                                              .body = std::move(tar),
                                              .headers = {"content-type: application/gzip"},
                                              .total_s = kLongSeconds}));
  ASSAY_ASSIGN_OR_RETURN(const Json reply, Parsed(sent));
  return PrintFindings(reply, options.json);
}

}  // namespace

int RunClassMake(const ClassMakeOptions& options) { return Ended(Make(options)); }
int RunClassInvite(const ClassInviteOptions& options) { return Ended(Invite(options)); }
int RunClassShow(const ClassShowOptions& options) { return Ended(Show(options)); }
int RunClassSheet(const ClassSheetOptions& options) { return Ended(Sheet(options)); }
int RunClassExport(const ClassExportOptions& options) { return Ended(Export(options)); }
int RunClassImport(const ClassImportOptions& options) { return Ended(Import(options)); }
int RunWorklogSubmit(const WorklogSubmitOptions& options) { return Ended(Submit(options)); }

}  // namespace assay
