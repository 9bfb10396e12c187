#include "web/api.h"
