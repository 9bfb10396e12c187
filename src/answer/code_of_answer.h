// Takes a candidate's source out of an answer. A bad answer is data: then there is a text for its
// author instead. Pure.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace assay {

// How a candidate is recognised (docs/candidate-abi.md).
enum class CodeForm {
  kAny,
  kNative,  // ASSAY_KERNEL, in C, C++ or CUDA
  kDevice,  // '//! launch' lines
  kPython,  // class ModelNew
};

struct AnsweredCode {
  std::string source;              // ends with a line break
  CodeForm form = CodeForm::kAny;  // as its marks say
  std::string language;            // of its fence: "cpp"; empty: none
  bool is_cut_off = false;         // its fence has no end: the length limit, as a rule
  bool is_edited = false;          // made by edits from the parent
};

// The error says what the answer lacks, in sentences that a repair prompt can quote.
//
// Of several fenced blocks the last complete one counts that has the marks of the wanted form,
// unless it is shorter than half of the longest such one: then it is an excerpt. Without marked
// blocks, edits (apply_diff.h) apply to `parent`. Without fences, the code is what lies between its
// first and its last line. Reasoning in tags is left out.
std::expected<AnsweredCode, std::string> CodeOfAnswer(std::string_view answer, CodeForm wanted,
                                                      std::string_view parent = {});

// Returns the form that a source's marks say; kAny: it has none.
CodeForm MarkedForm(std::string_view source);

// Returns true if the text is no file of the form, which is kPython or any other, since a fence, a
// tag of reasoning, or prose stands where code would stand. Text within the comments and strings of
// real code does not count: no file that a compiler or Python takes is an answer.
bool IsAnswer(std::string_view text, CodeForm form);

}  // namespace assay
