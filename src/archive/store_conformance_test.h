// Tests that every engine of the archive must pass. An engine is a type with
//
//   static std::string Place(const std::filesystem::path& folder);  // where a store lies in it
//   static Result<std::unique_ptr<Store>> Open(const std::string& place);
//   // Replaces bytes in what a closed store keeps, as a faulty disk would. They have one length.
//   static void ChangeBytes(const std::string& place, const std::string& from, const std::string&
//   to);
//   static std::string Unavailable();  // optional: why the tests are skipped; empty: they run
//
// INSTANTIATE_TYPED_TEST_SUITE_P(Name, StoreConformance, Engine) in the engine's own test runs
// them.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "archive/store.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/unique_fd.h"

namespace assay {

inline NewRecord NoteOf(const std::string& text, const std::string& name = "note.txt") {
  NewRecord record;
  record.facts = {RecordKind::kNote, name, "", "softmax", ""};
  record.content = text;
  return record;
}

inline NewRecord VerdictOf(const std::string& problem, const std::string& outcome,
                           const std::string& id) {
  NewRecord record;
  record.facts = {RecordKind::kVerdict, "mine.cpp", id, problem, outcome};
  record.content = "{\"id\":\"" + id + "\"}";
  record.source = "int source;";
  record.terms = "{}";
  return record;
}

// Runs `work` in a process of its own, which ends with what it returns.
inline pid_t InChild(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return child;
}

inline int ExitOf(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

template <typename Engine>
class StoreConformance : public ::testing::Test {
 protected:
  StoreConformance()
      : folder_(TemporaryFolder::Create().value()), place_(Engine::Place(folder_.path())) {}

  void SetUp() override {
    if constexpr (requires { Engine::Unavailable(); })
      if (const std::string why = Engine::Unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  std::unique_ptr<Store> Open() const {
    auto store = Engine::Open(place_);
    EXPECT_TRUE(store) << store.error().message;
    return store ? std::move(*store) : nullptr;
  }
  static std::vector<Record> All(Store& store) {
    RecordQuery query;
    query.oldest_first = true;
    return store.Find(query).value();
  }
  static void ExpectWhole(Store& store, int64_t records) {
    const auto report = VerifyChain(store);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_THAT(report->faults, ::testing::IsEmpty());
    EXPECT_EQ(report->records, records);
  }

  TemporaryFolder folder_;
  std::string place_;
};
TYPED_TEST_SUITE_P(StoreConformance);

TYPED_TEST_P(StoreConformance, KeepsBytesByTheirHash) {
  const std::string bytes("a\0b\xff\n", 5);
  std::string hash;
  {
    const auto store = this->Open();
    hash = store->Put(bytes).value();
    EXPECT_EQ(hash, Sha256Hex(bytes));
    EXPECT_EQ(store->Put(bytes).value(), hash);
    EXPECT_EQ(store->Put("").value(), Sha256Hex(""));
  }
  const auto store = this->Open();
  EXPECT_EQ(store->Get(hash).value(), bytes);
  EXPECT_EQ(store->Get(Sha256Hex("")).value(), "");
  EXPECT_THAT(store->Get(Sha256Hex("other")).error().message, ::testing::HasSubstr("no bytes"));
}

TYPED_TEST_P(StoreConformance, RecordsAreReadAsTheyWereAppended) {
  std::vector<Record> appended;
  {
    const auto store = this->Open();
    appended =
        store->Append(std::vector{NoteOf("one"), VerdictOf("softmax", "faster", "ab12")}).value();
  }
  const auto store = this->Open();
  const std::vector<Record> read = this->All(*store);
  ASSERT_EQ(read.size(), 2u);
  ASSERT_EQ(appended.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].hash, appended[i].hash);
    EXPECT_EQ(RecordHash(read[i]), read[i].hash);
    EXPECT_EQ(read[i].sequence, static_cast<int64_t>(i) + 1);
  }
  EXPECT_EQ(read[0].parent, kFirstParent);
  EXPECT_EQ(read[1].parent, read[0].hash);
  EXPECT_EQ(read[0].source, "");
  EXPECT_EQ(read[1].facts.outcome, "faster");
  EXPECT_EQ(read[1].facts.id, "ab12");
  EXPECT_EQ(store->Get(read[1].source).value(), "int source;");
  EXPECT_EQ(store->Get(read[1].terms).value(), "{}");
  this->ExpectWhole(*store, 2);
}

TYPED_TEST_P(StoreConformance, AnEmptyStoreIsWhole) {
  const auto store = this->Open();
  this->ExpectWhole(*store, 0);
  EXPECT_EQ(VerifyChain(*store)->head, kFirstParent);
  EXPECT_TRUE(store->Append({}).value().empty());
}

TYPED_TEST_P(StoreConformance, WhatIsKeptOnceIsNotAppendedAgain) {
  const auto store = this->Open();
  NewRecord once = NoteOf("one");
  once.once = true;
  EXPECT_EQ(store->Append(std::vector{once, once, NoteOf("two")})->size(), 2u);
  EXPECT_EQ(store->Append(std::vector{once})->size(), 0u);
  once.facts.kind = RecordKind::kCandidate;
  EXPECT_EQ(store->Append(std::vector{once})->size(), 1u);
  this->ExpectWhole(*store, 3);
}

TYPED_TEST_P(StoreConformance, RecordsAreFound) {
  const auto store = this->Open();
  const auto records = store->Append(
      std::vector{VerdictOf("softmax", "faster", "ab12"), VerdictOf("softmax", "wrong", "cd34"),
                  VerdictOf("relu", "wrong", "ef56"), NoteOf("text")});
  ASSERT_TRUE(records) << records.error().message;
  const auto found = [&](const RecordQuery& query) {
    std::vector<int64_t> sequences;
    const std::vector<Record> all = store->Find(query).value();
    for (const Record& record : all) sequences.push_back(record.sequence);
    return sequences;
  };
  using Sequences = std::vector<int64_t>;
  EXPECT_EQ(found({}), (Sequences{4, 3, 2, 1}));
  EXPECT_EQ(found({.kind = RecordKind::kVerdict, .limit = 2}), (Sequences{3, 2}));
  EXPECT_EQ(found({.problem = "softmax"}), (Sequences{4, 2, 1}));
  EXPECT_EQ(found({.problem = "softmax", .outcome = "wrong"}), Sequences{2});
  EXPECT_EQ(found({.after = 1, .oldest_first = true, .limit = 2}), (Sequences{2, 3}));
  EXPECT_EQ(found({.reference = "cd34"}), Sequences{2});
  EXPECT_EQ(found({.reference = "cd3"}), Sequences{});
  EXPECT_EQ(found({.reference = records->at(2).hash.substr(0, 12)}), Sequences{3});
  EXPECT_EQ(found({.reference = records->at(3).content}), Sequences{4});
  EXPECT_EQ(found({.problem = "' OR 1 --"}), Sequences{});
}

TYPED_TEST_P(StoreConformance, AChangedByteIsFound) {
  const std::vector<NewRecord> three{NoteOf("first of all"), NoteOf("unchanged", "name-of-second"),
                                     NoteOf("last of all")};
  ASSERT_TRUE(this->Open()->Append(three));
  TypeParam::ChangeBytes(this->place_, "first of all", "first of aLl");
  {
    const auto store = this->Open();
    const auto report = VerifyChain(*store);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_THAT(report->faults,
                ::testing::ElementsAre(::testing::AllOf(::testing::HasSubstr("record 1: "),
                                                        ::testing::HasSubstr("were changed"))));
    EXPECT_FALSE(store->Get(Sha256Hex("first of all")));
  }
  TypeParam::ChangeBytes(this->place_, "name-of-second", "name-of-Second");
  const auto report = VerifyChain(*this->Open());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->faults, ::testing::Contains("record 2: it was changed"));
  EXPECT_EQ(report->records, 3);
}

TYPED_TEST_P(StoreConformance, RecordsAreAdoptedAsTheyStand) {
  std::vector<Record> records(2);
  const std::vector<std::string> bytes{"one", "two"};
  for (int64_t i = 0; i < 2; ++i) {
    Record& record = records[static_cast<size_t>(i)];
    record.sequence = i + 1;
    record.facts = {RecordKind::kNote, "name", "id", "problem", ""};
    record.time = "2001-02-03T04:05:06Z";
    record.content = Sha256Hex(bytes[static_cast<size_t>(i)]);
    record.parent = i == 0 ? std::string(kFirstParent) : records[0].hash;
    record.hash = RecordHash(record);
  }
  const auto store = this->Open();
  EXPECT_FALSE(store->Adopt(std::span(records).subspan(1), bytes));  // the first is missing
  EXPECT_EQ(store->Adopt(std::span(records).first(1), bytes).value(), 1);
  std::vector<Record> changed = records;
  changed[1].facts.name = "other";
  EXPECT_FALSE(store->Adopt(changed, bytes));
  EXPECT_EQ(store->Adopt(records, bytes).value(), 1);
  EXPECT_EQ(store->Adopt(records, bytes).value(), 0);
  const std::vector<Record> kept = this->All(*store);
  ASSERT_EQ(kept.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(kept[i].hash, records[i].hash);
  EXPECT_EQ(store->Append(std::vector{NoteOf("three")})->front().parent, records[1].hash);
  this->ExpectWhole(*store, 3);
}

TYPED_TEST_P(StoreConformance, ProcessesThatAppendAtOnceMakeOneChain) {
  constexpr int kRecords = 40;
  const auto work = [&](int writer) {
    auto store = TypeParam::Open(this->place_);
    if (!store) return 1;
    for (int i = 0; i < kRecords; ++i)
      if (!(*store)->Append(std::vector{NoteOf(fmt::format("{}", i), fmt::format("w{}", writer))}))
        return 2;
    return 0;
  };
  const pid_t first = InChild([&] { return work(1); });
  const pid_t second = InChild([&] { return work(2); });
  EXPECT_EQ(ExitOf(first), 0);
  EXPECT_EQ(ExitOf(second), 0);
  const auto store = this->Open();
  this->ExpectWhole(*store, 2 * kRecords);
  std::map<std::string, int> next;
  for (const Record& record : this->All(*store))
    EXPECT_EQ(store->Get(record.content).value(), fmt::format("{}", next[record.facts.name]++));
  EXPECT_EQ(next["w1"], kRecords);
  EXPECT_EQ(next["w2"], kRecords);
}

// A process appends, and writes each record's hash to the pipe once the append has returned.
template <typename Engine>
int AppendUntilKilled(const std::string& place, int round, int acknowledgements) {
  auto store = Engine::Open(place);
  if (!store) return 1;
  for (int i = 0;; ++i) {
    const std::string text = fmt::format("{} {} {}", round, i, std::string(20'000, 'x'));
    const auto records = (*store)->Append(std::vector{NoteOf(text), NoteOf(text + "again")});
    if (!records) return 2;
    for (const Record& record : *records)
      if (::write(acknowledgements, record.hash.data(), 64) != 64) return 3;
  }
}

TYPED_TEST_P(StoreConformance, WhatWasAcknowledgedSurvivesKills) {
  constexpr int kKills = 50;
  std::set<std::string> acknowledged;
  for (int round = 0; round < kKills; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd reading(ends[0]), writing(ends[1]);
    const pid_t child =
        InChild([&] { return AppendUntilKilled<TypeParam>(this->place_, round, writing.get()); });
    writing.Close();
    const int awaited = round % 10 == 9 ? 150 : 1 + round % 7;
    char hash[64];
    const auto read_one = [&] {
      const bool whole = ::read(reading.get(), hash, 64) == 64;
      if (whole) acknowledged.emplace(hash, 64);
      return whole;
    };
    for (int i = 0; i < awaited; ++i) ASSERT_TRUE(read_one()) << "exit " << ExitOf(child);
    const int64_t end = MonotonicNs() + round * 17'000;
    while (MonotonicNs() < end) {
    }
    ::kill(child, SIGKILL);
    EXPECT_EQ(ExitOf(child), 128 + SIGKILL);
    while (read_one()) {
    }
  }
  const auto store = this->Open();
  const std::vector<Record> records = this->All(*store);
  std::set<std::string> kept;
  for (const Record& record : records) kept.insert(record.hash);
  EXPECT_THAT(acknowledged, ::testing::SizeIs(::testing::Gt(size_t{kKills})));
  for (const std::string& hash : acknowledged) EXPECT_TRUE(kept.contains(hash)) << hash;
  // At most the append in hand at each kill was kept and not acknowledged.
  EXPECT_LE(kept.size(), acknowledged.size() + 2 * kKills);
  this->ExpectWhole(*store, static_cast<int64_t>(records.size()));
}

REGISTER_TYPED_TEST_SUITE_P(StoreConformance, KeepsBytesByTheirHash,
                            RecordsAreReadAsTheyWereAppended, AnEmptyStoreIsWhole,
                            WhatIsKeptOnceIsNotAppendedAgain, RecordsAreFound, AChangedByteIsFound,
                            RecordsAreAdoptedAsTheyStand, ProcessesThatAppendAtOnceMakeOneChain,
                            WhatWasAcknowledgedSurvivesKills);

}  // namespace assay
