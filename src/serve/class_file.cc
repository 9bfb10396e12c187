#include "serve/class_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/version.h"
#include "model/json_node.h"
#include "serve/words.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "assay.class/1";
constexpr const char* kClassFile = "class.json";
constexpr const char* kRubricFile = "rubric.toml";
constexpr const char* kSources = "sources/";
constexpr const char* kUploads = "uploads/";
constexpr const char* kVerdicts = "verdicts/";
constexpr const char* kWorklogs = "worklogs/";

constexpr std::string_view kReadMe =
    R"(A class, as assay class export wrote it. Another server takes it by assay class import.

class.json     members, jobs, worklogs with all marks, finalists
rubric.toml    by which worklogs are graded
sheet.csv      a line a worklog, with its marks
worklogs/N/    a worklog as it was sent last, with marks.toml: assay worklog check --in worklogs/N
uploads/       worklogs as they were sent before, by SHA-256
sources/       candidates, by SHA-256
verdicts/      of all jobs that have one, by id
)";

std::string Dumped(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json JobJson(const ClassFileJob& job) {
  return {{"id", job.id},
          {"author", job.author},
          {"kind", job.kind},
          {"state", job.state},
          {"problem", job.problem},
          {"size", job.size},
          {"set", job.settings},
          {"name", job.name},
          {"source", job.source},
          {"opponent", job.opponent},
          {"opponent_name", job.opponent_name},
          {"needs", job.needs},
          {"made", UtcText(job.made_s)},
          {"ended", UtcText(job.ended_s)},
          {"attempts", job.attempts},
          {"outcome", job.outcome},
          {"verdict", job.verdict},
          {"failure", job.failure},
          {"own_runner", job.own_runner}};
}

Json WorklogJson(const ClassFileWorklog& worklog, size_t number) {
  Json uploads = Json::array(), marks = Json::array();
  for (const ClassFileUpload& each : worklog.uploads)
    uploads.push_back({{"time", UtcText(each.time_s)}, {"tar", each.tar}});
  for (const KeptMarks& each : worklog.marks)
    marks.push_back({{"revision", each.revision},
                     {"mentor", each.mentor},
                     {"time", UtcText(each.marked_s)},
                     {"upload", each.upload},
                     {"marks", MarksText(each.marks)}});
  return {{"folder", fmt::format("{}{}", kWorklogs, number)},
          {"author", worklog.author},
          {"worklog", worklog.worklog},
          {"problem", worklog.problem},
          {"uploads", std::move(uploads)},
          {"marks", std::move(marks)}};
}

Json ClassJson(const ClassFile& file) {
  const Class& of = file.of;
  Json json = {{"schema", kSchema},
               {"assay", kAssayVersion},
               {"exported", UtcText(file.exported_s)},
               {"key", of.key},
               {"name", of.terms.name},
               {"deadline", UtcText(of.terms.deadline_s)},
               {"jobs_a_day", of.terms.jobs_a_day},
               {"worklogs_a_day", of.terms.worklogs_a_day},
               {"made", UtcText(of.made_s)},
               {"closed", UtcText(of.closed_s)},
               {"finals", UtcText(of.finals_s)},
               {"jobs_left_out", file.jobs_left_out},
               {"members", Json::array()},
               {"mentors", file.mentors},
               {"jobs", Json::array()},
               {"worklogs", Json::array()},
               {"finalists", Json::array()}};
  for (const Account& each : file.members)
    json["members"].push_back({{"name", each.name}, {"role", RoleName(each.role)}});
  for (const ClassFileJob& each : file.jobs) json["jobs"].push_back(JobJson(each));
  for (size_t i = 0; i < file.worklogs.size(); ++i)
    json["worklogs"].push_back(WorklogJson(file.worklogs[i], i + 1));
  for (const ClassFileFinalist& each : file.finalists)
    json["finalists"].push_back(
        {{"author", each.author}, {"board", each.board}, {"best", each.best}, {"job", each.job}});
  return json;
}

// Adds the worklog's last upload as a folder.
Result<void> AddFolder(const ClassFileWorklog& worklog, size_t number, const ClassFile& file,
                       const TarLibrary& tars, std::vector<TarFile>* files) {
  const std::string folder = fmt::format("{}{}/", kWorklogs, number);
  ASSAY_ASSIGN_OR_RETURN(std::vector<TarFile> unpacked,
                         tars.Read(file.blobs.at(worklog.uploads.back().tar), kUploadLimits));
  for (TarFile& each : unpacked) files->push_back({folder + each.path, std::move(each.content)});
  if (!worklog.marks.empty())
    files->push_back({folder + "marks.toml", MarksText(worklog.marks.back().marks)});
  return {};
}

int64_t Moment(const JsonNode& node) { return UtcSeconds(node.Text()); }

ClassFileJob ReadJob(const JsonNode& node) {
  ClassFileJob job;
  job.id = node.At("id").Whole<int64_t>();
  job.author = node.At("author").Text();
  job.kind = node.At("kind").OneOf({"judge", "compare", "finalist"});
  job.state = node.At("state").OneOf({"done", "failed", "cancelled"});
  job.problem = node.At("problem").Text();
  job.size = node.At("size").Text();
  job.settings = node.At("set").Text();
  job.name = node.At("name").Text();
  job.source = node.At("source").Text();
  job.opponent = node.At("opponent").Text();
  job.opponent_name = node.At("opponent_name").Text();
  job.needs = node.At("needs").OneOf({"", "cpu", "cuda"});
  job.made_s = Moment(node.At("made"));
  job.ended_s = Moment(node.At("ended"));
  job.attempts = node.At("attempts").Whole<int64_t>();
  job.outcome = node.At("outcome").Text();
  job.verdict = node.At("verdict").Text();
  job.failure = node.At("failure").Text();
  const JsonNode own = node.Find("own_runner");  // files of earlier versions have none
  job.own_runner = !own.IsNull() && own.Boolean();
  return job;
}

ClassFileWorklog ReadWorklog(const JsonNode& node, std::string* fault) {
  ClassFileWorklog worklog;
  worklog.author = node.At("author").Text();
  worklog.worklog = node.At("worklog").Text();
  worklog.problem = node.At("problem").Text();
  node.At("uploads").ForEach([&](const JsonNode& each) {
    worklog.uploads.push_back({Moment(each.At("time")), each.At("tar").Text()});
  });
  node.At("marks").ForEach([&](const JsonNode& each) {
    KeptMarks kept;
    kept.revision = each.At("revision").Whole<int64_t>();
    kept.mentor = each.At("mentor").Text();
    kept.marked_s = Moment(each.At("time"));
    kept.upload = each.At("upload").Whole<int64_t>();
    auto marks = ParseMarks(each.At("marks").Text(), "marks");
    if (marks)
      kept.marks = std::move(*marks);
    else
      *fault = marks.error().message;
    worklog.marks.push_back(std::move(kept));
  });
  if (worklog.uploads.empty()) *fault = "a worklog has no upload";
  return worklog;
}

Result<ClassFile> ReadClassJson(const std::string& text) {
  ASSAY_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text));
  std::string error, fault;
  const JsonNode root = document.Root(&error);
  ClassFile file;
  if (root.At("schema").Text() != kSchema)
    return UsageError(
        fmt::format("class.json does not begin with the schema {}: it is no class, "
                    "or one of a newer version of Assay",
                    kSchema));
  Class& of = file.of;
  of.key = root.At("key").Text();
  of.terms.name = root.At("name").Text();
  of.terms.deadline_s = Moment(root.At("deadline"));
  of.terms.jobs_a_day = root.At("jobs_a_day").Whole<int64_t>();
  of.terms.worklogs_a_day = root.At("worklogs_a_day").Whole<int64_t>();
  of.made_s = Moment(root.At("made"));
  of.closed_s = Moment(root.At("closed"));
  of.finals_s = Moment(root.At("finals"));
  file.exported_s = Moment(root.At("exported"));
  file.jobs_left_out = root.At("jobs_left_out").Whole<int64_t>();
  root.At("members").ForEach([&](const JsonNode& each) {
    const std::string role = each.At("role").OneOf({"mentor", "student", "machine"});
    file.members.push_back(
        {0, each.At("name").Text(), RoleFromName(role).value_or(Role::kStudent), 0});
  });
  root.At("mentors").ForEach([&](const JsonNode& each) { file.mentors.push_back(each.Text()); });
  root.At("jobs").ForEach([&](const JsonNode& each) { file.jobs.push_back(ReadJob(each)); });
  root.At("worklogs").ForEach([&](const JsonNode& each) {
    file.worklogs.push_back(ReadWorklog(each, &fault));
  });
  root.At("finalists").ForEach([&](const JsonNode& each) {
    file.finalists.push_back({each.At("author").Text(), each.At("board").Text(),
                              each.At("best").Whole<int64_t>(), each.At("job").Whole<int64_t>()});
  });
  if (error.empty()) error = fault;
  if (!error.empty()) return UsageError(fmt::format("class.json: {}", error));
  return file;
}

Result<void> CheckWhole(const ClassFile& file) {
  const auto fault = [](std::string why) {
    return UsageError(fmt::format("the class file is not whole: {}; export the class again", why));
  };
  std::set<std::string> names;
  for (const Account& each : file.members)
    if (!names.insert(each.name).second)
      return fault(fmt::format("two members are named {}", each.name));
  std::set<int64_t> jobs;
  for (const ClassFileJob& each : file.jobs) {
    if (!jobs.insert(each.id).second || each.ended_s == 0)
      return fault(fmt::format("job {} is there twice, or has no end", each.id));
    if (!names.contains(each.author)) return fault(fmt::format("{} is no member", each.author));
    for (const std::string& hash : {each.source, each.opponent})
      if (!hash.empty() && !file.blobs.contains(hash))
        return fault(fmt::format("the source {} is missing", hash.substr(0, 64)));
    if (each.source.empty() || (each.state == "done") != !each.verdict.empty())
      return fault(fmt::format("job {} lacks its source or verdict", each.id));
    if (!each.verdict.empty() && !file.verdicts.contains(each.verdict))
      return fault(fmt::format("the verdict {} is missing", each.verdict.substr(0, 64)));
  }
  for (const ClassFileWorklog& each : file.worklogs) {
    if (!names.contains(each.author)) return fault(fmt::format("{} is no member", each.author));
    for (const ClassFileUpload& upload : each.uploads)
      if (!file.blobs.contains(upload.tar))
        return fault(
            fmt::format("the upload {} is missing or was changed", upload.tar.substr(0, 64)));
  }
  std::set<std::pair<std::string, std::string>> finals;
  for (const ClassFileFinalist& each : file.finalists) {
    if (!names.contains(each.author) || !jobs.contains(each.best))
      return fault(fmt::format("a final is of nobody's: {}", each.author));
    if (!finals.emplace(each.author, each.board).second)
      return fault(fmt::format("a final of {} is there twice", each.author));
  }
  return {};
}

// Takes the files of "worklogs/N/" together, as the tar that was sent.
Result<void> PackFolders(std::span<const TarFile> files, const TarLibrary& tars, ClassFile* file) {
  std::map<std::string, std::vector<TarFile>> folders;
  for (const TarFile& each : files) {
    if (!each.path.starts_with(kWorklogs)) continue;
    const size_t slash = each.path.find('/', std::string_view(kWorklogs).size());
    if (slash == std::string::npos) continue;
    folders[each.path.substr(0, slash)].push_back({each.path.substr(slash + 1), each.content});
  }
  for (auto& [name, inside] : folders) {
    std::erase_if(inside, [](const TarFile& each) { return each.path == "marks.toml"; });
    ASSAY_ASSIGN_OR_RETURN(std::string tar, tars.Write(inside, TarForm::kPlain));
    std::string hash = Sha256Hex(tar);
    file->blobs[std::move(hash)] = std::move(tar);
  }
  return {};
}

}  // namespace

Result<std::string> WriteClassFile(const ClassFile& file, const std::string& sheet,
                                   const TarLibrary& tars) {
  std::vector<TarFile> files = {
      {"README", std::string(kReadMe)},
      {kClassFile, Dumped(ClassJson(file))},
      {kRubricFile,
       file.of.terms.rubric.empty() ? std::string(DefaultRubricText()) : file.of.terms.rubric},
      {"sheet.csv", sheet}};
  std::set<std::string> last, earlier;
  for (size_t i = 0; i < file.worklogs.size(); ++i) {
    const ClassFileWorklog& each = file.worklogs[i];
    ASSAY_RETURN_IF_ERROR(AddFolder(each, i + 1, file, tars, &files));
    last.insert(each.uploads.back().tar);
    for (const ClassFileUpload& upload : each.uploads) earlier.insert(upload.tar);
  }
  for (const auto& [hash, content] : file.blobs)
    if (!last.contains(hash))
      files.push_back({(earlier.contains(hash) ? kUploads : kSources) + hash, content});
  for (const auto& [id, content] : file.verdicts)
    files.push_back({fmt::format("{}{}.json", kVerdicts, id), content});
  return tars.Write(files, TarForm::kGzip);
}

Result<ClassFile> ReadClassFile(std::string_view bytes, const TarLibrary& tars) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<TarFile> files, tars.Read(bytes, kClassFileLimits));
  const auto find = [&](std::string_view path) -> const TarFile* {
    for (const TarFile& each : files)
      if (each.path == path) return &each;
    return nullptr;
  };
  const TarFile* words = find(kClassFile);
  if (words == nullptr)
    return UsageError("there is no class.json in the tar: it is no exported class");
  ASSAY_ASSIGN_OR_RETURN(ClassFile file, ReadClassJson(words->content));
  if (const TarFile* rubric = find(kRubricFile);
      rubric != nullptr && rubric->content != DefaultRubricText())
    file.of.terms.rubric = rubric->content;
  for (const TarFile& each : files) {
    const bool is_source = each.path.starts_with(kSources),
               is_tar = each.path.starts_with(kUploads);
    const std::string name = each.path.substr(each.path.rfind('/') + 1);
    if (is_source || is_tar) {
      if (Sha256Hex(each.content) != name)
        return UsageError(
            fmt::format("{} of the class file was changed: export it again", each.path));
      file.blobs[name] = each.content;
    }
    if (each.path.starts_with(kVerdicts) && name.ends_with(".json"))
      file.verdicts[name.substr(0, name.size() - 5)] = each.content;
  }
  ASSAY_RETURN_IF_ERROR(PackFolders(files, tars, &file));
  ASSAY_RETURN_IF_ERROR(CheckWhole(file));
  return file;
}

}  // namespace assay
