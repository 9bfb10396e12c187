// assay: one program, one file a subcommand.
#include "cli/commands.h"

int main(int argument_count, char** arguments) {
  return assay::CommandLine().Run(argument_count, arguments);
}
