#include "capstan/user_error.h"
