#include "cluster/pilot_script.h"

#include <fmt/format.h>

namespace assay {
namespace {

constexpr size_t kFolderDigits = 16;

constexpr const char* kCheck = R"sh(
sum() { sha256sum < "$1" | cut -c 1-64; }
fail() { echo "assay: on node ${SLURMD_NODENAME:-$(hostname)}: $1" >&2; exit 8; }
)sh";

constexpr const char* kOwnProgram = R"sh(
[ -x "$program" ] || fail "there is no $program: put it into a folder that all nodes share, \
or give --bundle"
here=$(sum "$program")
[ "$here" = "$hash" ] || fail "$program is not the controller's Assay ($here, $hash there): \
install one version on all nodes"
)sh";

// The archive is copied, checked, unpacked beside its place, and moved there whole.
constexpr const char* kUnpack = R"sh(
folder=${TMPDIR:-/tmp}/assay-$(id -u)-$short
if [ ! -x "$folder/assay/bin/assay" ]; then
  new=$(mktemp -d "$folder.XXXXXX") || fail "cannot unpack into ${TMPDIR:-/tmp}"
  cp "$bundle" "$new/bundle" 2>/dev/null || sbcast "$bundle" "$new/bundle" ||
    fail "cannot copy $bundle"
  [ "$(sum "$new/bundle")" = "$hash" ] || fail "the copy of $bundle is damaged"
  tar -xzf "$new/bundle" -C "$new" || fail "cannot unpack $bundle: is the disk full?"
  rm "$new/bundle"
  mv -T "$new" "$folder" 2>/dev/null || rm -r "$new"
fi
[ -O "$folder" ] || fail "$folder belongs to somebody else"
program=$folder/assay/bin/assay
)sh";

}  // namespace

std::string ShellWord(const std::string& text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  }
  return word + "'";
}

std::string PilotScript(const PilotProgram& program) {
  std::string script = std::string("#!/bin/bash\nset -u\n") + (kCheck + 1);
  if (program.bundle.empty())
    script +=
        fmt::format("program={}\nhash={}", ShellWord(program.path), program.hash) + kOwnProgram;
  else
    script += fmt::format("bundle={}\nhash={}\nshort={}", ShellWord(program.bundle),
                          program.bundle_hash, program.bundle_hash.substr(0, kFolderDigits)) +
              kUnpack;
  script += "exec \"$program\"";
  for (const std::string& argument : program.arguments) script += " " + ShellWord(argument);
  return script + "\n";
}

}  // namespace assay
