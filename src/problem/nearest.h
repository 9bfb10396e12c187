// Guesses the name that the user meant, for messages about unknown names. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Returns the fewest insertions, deletions, changes and swaps of neighbours that turn `b` into `a`.
inline size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({change, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// Returns the known name nearest to `name`; empty if more than a third of `name` differs from each.
inline std::string NearestName(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kNameBytesMax = 100;
  if (name.size() > kNameBytesMax) return {};
  std::string nearest;
  size_t distance_min = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kNameBytesMax) continue;
    const size_t distance = EditDistance(name, candidate);
    if (distance < distance_min) {
      distance_min = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

// Returns "; did you mean 'NAME'?", or an empty text.
inline std::string Suggestion(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = NearestName(name, known);
  return nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?";
}

}  // namespace assay
