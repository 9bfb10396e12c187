#include "serve/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "serve/class_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

constexpr const char* kInside = "a file's content";

la_ssize_t Append(archive*, void* text, const void* bytes, size_t count) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

// A tar of one entry that `shape` changes, as somebody else's program could write it.
std::string Hostile(const std::function<void(archive_entry*)>& shape) {
  std::string bytes;
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  archive_write_open(writer, &bytes, nullptr, &Append, nullptr);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_pathname(entry, "a");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, 16);
  shape(entry);
  archive_write_header(writer, entry);
  archive_write_data(writer, kInside, 16);
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  return bytes;
}

std::string FaultOf(const std::string& bytes, const TarLimits& limits = {}) {
  const auto files = Tars().Read(bytes, limits);
  return files ? "none" : files.error().message;
}

std::string FaultOfPath(const char* path) {
  return FaultOf(Hostile([&](archive_entry* entry) { archive_entry_set_pathname(entry, path); }));
}

TEST(Tar, FilesComeBackAsTheyWere) {
  const std::vector<TarFile> files = {
      {"a.toml", "x"}, {"versions/v1.cpp", std::string(100'000, 'y')}, {"versions/v2.cpp", ""}};
  for (const TarForm form : {TarForm::kPlain, TarForm::kGzip}) {
    const auto bytes = Tars().Write(files, form);
    ASSERT_TRUE(bytes) << bytes.error().message;
    EXPECT_EQ(*bytes, *Tars().Write(files, form));
    EXPECT_EQ(bytes->size() < 10'000, form == TarForm::kGzip);
    const auto back = Tars().Read(*bytes, {});
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_EQ(back->size(), files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      EXPECT_EQ((*back)[i].path, files[i].path);
      EXPECT_EQ((*back)[i].content, files[i].content);
    }
  }
}

TEST(Tar, PathsThatLeadElsewhereAreRefused) {
  for (const char* path : {"/etc/passwd", "../a", "a/../../b", "a//b", "a/./b", "..", "a/..",
                           "./../a", "//a", "././a"})
    EXPECT_THAT(FaultOfPath(path), HasSubstr("leads out of its folder")) << path;
  for (const char* path : {"a b", "a\\b", "a\nb", "\xc3\xa4", "a:b", "a\x1b[31m", "<b>", "a\"b"})
    EXPECT_THAT(FaultOfPath(path), HasSubstr("the tar has")) << path;
  EXPECT_THAT(FaultOfPath("a/b/c/d/e/f/g"), HasSubstr("too deep"));
  EXPECT_THAT(FaultOfPath(std::string(300, 'a').c_str()), HasSubstr("too long"));
  // A tar of GNU's with a name of 101 bytes was once taken, and could not be written again.
  EXPECT_THAT(FaultOfPath(std::string(101, 'a').c_str()), HasSubstr("too long"));
  EXPECT_THAT(FaultOfPath(("b/" + std::string(101, 'a')).c_str()), HasSubstr("too long"));
  EXPECT_EQ(FaultOfPath(("b/" + std::string(100, 'a')).c_str()), "none");
  // Its name is not echoed as it stands.
  EXPECT_THAT(FaultOfPath("a\x1b[31m"), HasSubstr("a??31m"));
}

TEST(Tar, OrdinaryWaysToPackAFolderAreTaken) {
  for (const char* path : {"./a", "a", "a/b", ".git/config"})
    EXPECT_EQ(FaultOfPath(path), "none") << path;
}

TEST(Tar, LinksAndDevicesAreRefused) {
  EXPECT_THAT(FaultOf(Hostile([](archive_entry* entry) {
                archive_entry_set_filetype(entry, AE_IFLNK);
                archive_entry_set_symlink(entry, "/etc/passwd");
                archive_entry_set_size(entry, 0);
              })),
              HasSubstr("a link"));
  EXPECT_THAT(FaultOf(Hostile([](archive_entry* entry) {
                archive_entry_set_hardlink(entry, "/etc/passwd");
                archive_entry_set_size(entry, 0);
              })),
              HasSubstr("a link"));
  for (const auto kind : {AE_IFCHR, AE_IFBLK, AE_IFIFO})
    EXPECT_THAT(FaultOf(Hostile([&](archive_entry* entry) {
                  archive_entry_set_filetype(entry, kind);
                  archive_entry_set_size(entry, 0);
                })),
                HasSubstr("no plain file"));
}

TEST(Tar, ABombEndsAtTheLimit) {
  const std::vector<TarFile> zeros = {{"zeros", std::string(size_t{8} << 20, '\0')}};
  const std::string bomb = *Tars().Write(zeros, TarForm::kGzip);
  EXPECT_LT(bomb.size(), 20'000);
  EXPECT_THAT(FaultOf(bomb, {.bytes_max = size_t{1} << 20}), HasSubstr("more than 1 MiB"));
  std::vector<TarFile> many;
  for (int i = 0; i < 2000; ++i) many.push_back({"f" + std::to_string(i), ""});
  EXPECT_THAT(FaultOf(*Tars().Write(many, TarForm::kGzip)), HasSubstr("more than 1000 entries"));
  // A file that claims to be larger than all that follows.
  std::string claims = *Tars().Write(std::vector<TarFile>{{"a", "b"}}, TarForm::kPlain);
  claims.resize(512);
  EXPECT_THAT(FaultOf(claims), HasSubstr("no whole tar"));
}

TEST(Tar, TwoFilesOfOneNameAreRefused) {
  const std::vector<TarFile> twice = {{"a", "1"}, {"a", "2"}};
  EXPECT_THAT(FaultOf(*Tars().Write(twice, TarForm::kPlain)), HasSubstr("two files"));
  const std::vector<TarFile> both = {{"a", "1"}, {"a/b", "2"}};
  EXPECT_THAT(FaultOf(*Tars().Write(both, TarForm::kPlain)), HasSubstr("a file and a folder"));
}

TEST(Tar, OtherBytesAreNoTar) {
  for (const std::string& bytes : {std::string(), std::string("x"), std::string(2000, 'x'),
                                   std::string(4096, '\0'), std::string("PK\x03\x04 zip")})
    EXPECT_NE(FaultOf(bytes), "none");
}

}  // namespace
}  // namespace assay
