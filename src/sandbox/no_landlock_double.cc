// In the place of Landlock, for the tests' own confine: no rule at all.
#include "../../host/confine/landlock.h"

int ApplyLandlock(const char* const*, bool) { return 0; }
