#pragma once

namespace capstan {

// How many cores this process may run on; at least 1.
unsigned usable_cores();

}  // namespace capstan
