// Prints one sample verdict of each outcome, a JSON document a line, for schema_test.py.
#include <cstdio>

#include "model/sample_verdicts.h"
#include "model/verdict_json.h"

int main() {
  for (const assay::Verdict& verdict : assay::SampleVerdicts())
    std::puts(assay::VerdictToJson(verdict, -1).c_str());
  return 0;
}
