// Prints the lines of each kind of dataset, for dataset_schema_test.py.
#include <cstdio>

#include "search/sample_samples.h"

int main() {
  using assay::DatasetKind;
  for (const DatasetKind kind :
       {DatasetKind::kVerified, DatasetKind::kSft, DatasetKind::kPreference, DatasetKind::kRl,
        DatasetKind::kFouls, DatasetKind::kKernelBook})
    for (const std::string& line :
         assay::MakeDataset(kind, assay::SampleSamples(), assay::SampleTerms()).lines)
      std::fputs((line + "\n").c_str(), stdout);
  return 0;
}
