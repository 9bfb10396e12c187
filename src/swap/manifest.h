// A whole model and the kernels that may take the places of its parts: a .toml file beside the
// problem (docs/model.md has every key).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

// A kernel's file, with the changes that the manifest makes to its text.
struct SwapKernel {
  std::string path;                                          // from the manifest's folder
  std::vector<std::pair<std::string, std::string>> changes;  // each text occurs in the file
  std::string content;                                       // with the changes
};

// A part of the model, and the kernel that takes its place.
struct SwapPlace {
  std::string name;  // on a CPU that of a function of the problem's file
  std::string title;
  std::string python;  // on a CPU: the function that takes its place, and may call kernel(...)
  // Swapped in. Without a path on a CPU `python` alone; on a GPU the place is never swapped.
  SwapKernel kernel;
  SwapKernel plain;  // on a GPU: what stands there until it is swapped
};

// Memory between two kernels, on a GPU. Its axes are whole numbers and sizes of the problem's
// tensors, "tokens.size(0)".
struct SwapBuffer {
  std::string name, type;
  std::vector<std::string> shape;
};

// One use of a place's kernel, on a GPU.
struct SwapStep {
  enum class When { kFirst, kLayer, kLast };
  std::string place;
  When when = When::kLayer;
  // The kernel's tensor -> a buffer or a tensor of the problem, with "{layer}" for the number.
  std::map<std::string, std::string> arguments;
};

struct SwapManifest {
  std::string folder, file;  // as they were named
  std::string title;
  std::string problem;  // a file in the folder
  std::string device;   // "cpu" or "cuda"
  std::string size;     // a named size of the suite's, unless another is asked for
  std::string tokens;   // the problem's input whose first axis counts the tokens of a call
  std::string trace;    // the constant that shows the sums of layers
  std::string sums;     // on a GPU: the buffer that holds them
  std::string baselines = "eager";
  std::vector<SwapPlace> places;    // in the order of swaps; never empty
  std::vector<SwapBuffer> buffers;  // on a GPU
  std::vector<SwapStep> steps;      // on a GPU, in the order of a call

  std::string Path() const { return folder + "/" + file; }
  const SwapPlace* Find(std::string_view place) const;
};

// Reads text that stands in FOLDER/FILE; kernels are not read. Errors (kUsage) name the file, the
// line, the key and the remedy.
Result<SwapManifest> ParseSwapManifest(std::string_view text, const std::string& folder,
                                       const std::string& file);

// Returns the text with all changes made. Errors (kUsage): a text that does not occur.
Result<std::string> WithChanges(std::string text, const SwapKernel& kernel);

// Reads a manifest and its kernels.
Result<SwapManifest> ReadSwapManifest(const std::string& path);

}  // namespace assay
