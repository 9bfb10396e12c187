// Estimates the value of k attempts at a problem, without bias, from n >= k attempts. Attempts must
// be independent of each other; turns of one refinement are not. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

// Returns the probability that at least one of k attempts, drawn from n without replacement, is
// among the c that qualify: 1 - C(n - c, k) / C(n, k), as 1 - prod(1 - k / i) over i in n - c +
// 1..n. Chen et al., "Evaluating Large Language Models Trained on Code", arXiv 2107.03374, section
// 2.1; KernelBench's analysis.py has the same. Needs 0 <= c <= n and 1 <= k <= n.
double PassAtK(int64_t n, int64_t c, int64_t k);

// Returns the expected largest of k values drawn from all n without replacement: sum over the
// ascending values x_i of C(i - 1, k - 1) / C(n, k) x_i, since x_i is the largest in C(i - 1, k -
// 1) of the C(n, k) draws. Needs 1 <= k <= n.
double BestAtK(std::vector<double> values, int64_t k);

}  // namespace assay
