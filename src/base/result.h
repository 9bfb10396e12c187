// Operating errors as values: std::expected with one error type. Bugs are CHECKs (check.h), and a
// bad candidate is a verdict, never an Error.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

// Kinds of errors, by the user's remedy. Each maps to one exit code (cli/exit_code.h).
enum class ErrorKind {
  kUsage,  // the request is wrong: a missing file, a bad flag, a problem file that does not load
  kEnvironment,  // this machine lacks something, or an operation on it failed: never a verdict
  kInterrupted,  // the user asked to stop
  kUnjudged,     // this machine lacks what one candidate needs: others can be judged all the same
};

// The name in JSON: "usage", "environment" or "interrupted".
constexpr std::string_view ErrorKindName(ErrorKind kind) {
  return kind == ErrorKind::kUsage         ? "usage"
         : kind == ErrorKind::kInterrupted ? "interrupted"
                                           : "environment";
}

// A fact by which others decide what to do about an error. Its message is for people alone.
enum class ErrorCode {
  kNone,
  kNotHere,       // the problem's file needs what this machine lacks
  kTooLarge,      // the problem's values do not fit this machine's memory
  kMemory,        // a process found no more memory
  kDeviceMemory,  // nor did one on the device
  kDeviceBusy,    // CUDA gives no context, perhaps for want of memory
  kNoDevice,      // CUDA shows no GPU here, or has no driver
};

// The name in JSON: "not_here", "too_large"...; empty for kNone.
constexpr std::string_view ErrorCodeName(ErrorCode code) {
  constexpr std::string_view kNames[] = {
      "", "not_here", "too_large", "memory", "device_memory", "device_busy", "no_device"};
  return kNames[static_cast<int>(code)];
}
// kNone for a name that is none.
constexpr ErrorCode ErrorCodeFromName(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kNoDevice); ++i)
    if (ErrorCodeName(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  return ErrorCode::kNone;
}

struct Error {
  ErrorKind kind = ErrorKind::kEnvironment;
  std::string message;  // one clear sentence or a few lines, saying what to do
  ErrorCode code = ErrorCode::kNone;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> Fail(ErrorKind kind, std::string message,
                                   ErrorCode code = ErrorCode::kNone) {
  return std::unexpected(Error{kind, std::move(message), code});
}
inline std::unexpected<Error> UsageError(std::string message) {
  return Fail(ErrorKind::kUsage, std::move(message));
}
inline std::unexpected<Error> EnvironmentError(std::string message) {
  return Fail(ErrorKind::kEnvironment, std::move(message));
}

}  // namespace assay

// Evaluates a Result expression. An error is returned from the enclosing function; a value is bound
// to `target`.
#define ASSAY_CONCATENATE_(a, b) a##b
#define ASSAY_CONCATENATE(a, b) ASSAY_CONCATENATE_(a, b)
#define ASSAY_ASSIGN_OR_RETURN_(result, target, expression)       \
  auto result = (expression);                                     \
  if (!result) return std::unexpected(std::move(result).error()); \
  target = std::move(result).value()
#define ASSAY_ASSIGN_OR_RETURN(target, expression) \
  ASSAY_ASSIGN_OR_RETURN_(ASSAY_CONCATENATE(assay_result_, __LINE__), target, expression)
#define ASSAY_RETURN_IF_ERROR(expression)                      \
  do {                                                         \
    if (auto assay_status = (expression); !assay_status)       \
      return std::unexpected(std::move(assay_status).error()); \
  } while (false)
