// assay: what a verdict needs. The whole program is whole_main.cc.
#include "cli/programs.h"

int main(int argument_count, char** arguments) { return assay::RunCore(argument_count, arguments); }
