// lib/assay/assay: every command, started by assay.
#include "cli/programs.h"

int main(int argument_count, char** arguments) {
  return assay::RunWhole(argument_count, arguments);
}
