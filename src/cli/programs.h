// The two programs: `assay` has what a verdict needs, and starts the whole one for the rest.
#pragma once

namespace assay {

// The program `assay`: judge, new, explain, problems, audit, doctor and demo. Anything else, help
// for all included, is the whole program's, which takes this process's place. Where it was not
// built, the words that need it are an error that says how to build it.
int RunCore(int argument_count, char** arguments);

// Every command.
int RunWhole(int argument_count, char** arguments);

}  // namespace assay
