// A ladder: an ordered set of candidates for one problem, each a measured step. Its file,
// ladder*.toml, stands beside the rungs (docs/ladder.md has every key).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

struct Rung {
  std::string file;  // "01_naive.cpp", in the ladder's folder
  int number = 0;    // that the file's name begins with
  std::string idea;
  double predicted_percent = 0;  // of the library's speed, written before it was measured

  std::string Stem() const;            // "01_naive"
  std::string UnnumberedFile() const;  // "naive.cpp": rungs may be numbered anew
};

// NAME and its value as a Python literal, in the order of the file.
using LadderSize = std::vector<std::pair<std::string, std::string>>;

struct Ladder {
  std::string folder;  // as it was named
  std::string name;    // the folder's own
  std::string file;    // "ladder.toml"
  std::string title;
  std::string problem;    // a file in the folder, or the name of an installed one
  std::string device;     // "cpu" or "cuda"
  std::string precision;  // empty: the problem's
  std::string baseline = "eager";
  std::vector<std::string> also_against;  // further baselines
  std::string bound;                      // "memory" or "compute"
  std::string
      results;  // file with the raw results that stand for it, from the folder; may be empty
  std::vector<LadderSize> sizes;  // never empty
  std::vector<Rung> rungs;        // never empty

  std::string Path() const { return folder + "/" + file; }
  std::vector<std::string> Baselines() const;  // each once, the deciding one first
};

// Reads text that stands in FOLDER/FILE. Errors (kUsage) name the file, the line, the key and what
// to write there.
Result<Ladder> ParseLadder(std::string_view text, const std::string& folder,
                           const std::string& file);

// The same of a file, whose rungs must be there.
Result<Ladder> ReadLadder(const std::string& path);

// Every ladder*.toml in a folder and the folders in it, in alphabetical order, or the one file that
// `path` names. Errors (kUsage): none is there, or one cannot be read.
Result<std::vector<Ladder>> FindLadders(const std::string& path);

// Returns a size with the changes of "NAME=VALUE" texts. Errors (kUsage): not such a text.
Result<LadderSize> WithSettings(LadderSize size, const std::vector<std::string>& settings);

// "ROWS = 1024, INNER = 1024".
std::string DescribeSize(const LadderSize& size);

// Which rungs a text such as "03,05:08" names: numbers, and ranges of which either end may be left
// out. Errors (kUsage): not such a text, or a number that no rung has.
Result<std::vector<Rung>> ChooseRungs(const Ladder& ladder, const std::string& only);

}  // namespace assay
