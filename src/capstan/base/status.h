#include "capstan/status.h"
