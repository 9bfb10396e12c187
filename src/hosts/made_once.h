// Folders that are made once for a machine: outside of any sandbox, as the user, and of nothing
// that is under test. Sandboxes see them read-only.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace assay {

// Returns the place of such folders of one kind: below the cache folder; for root below /var/cache,
// since root's sandboxes run as another user, who cannot read root's home.
std::filesystem::path MadeFolders(const std::string& kind);

// Returns the folder `all`/`key`. If it is missing, `make` fills an empty folder, which is renamed
// into place if it returns true. Other calls and processes that want one of `all` wait meanwhile.
// Returns an empty string if the folder cannot be made.
std::string MadeOnce(const std::filesystem::path& all, const std::string& key,
                     const std::function<bool(const std::filesystem::path& making)>& make);

// Keeps the `count` youngest folders of `all`.
void KeepYoungest(const std::filesystem::path& all, size_t count);

// Runs a program without input and output; its files are readable by every user. Returns true if it
// exits with 0 within two minutes, after which it is killed.
bool RunOutside(const std::vector<std::string>& arguments);

}  // namespace assay
