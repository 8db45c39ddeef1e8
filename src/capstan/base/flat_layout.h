#include "capstan/layout.h"
