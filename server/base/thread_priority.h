#pragma once

#include <unistd.h>

namespace linnet::server {

// Lowers the priority of the calling thread, and of those that it starts from now on, below that of
// the engines. Otherwise ten thousand calls that are refused and made again at once would take most
// of the processor time: two cores then answered a fifth of the calls that they answer alone, with
// lower priorities three fifths. (More than 5 gains nothing; where other programs are busy, a
// thread with 5 still gets a quarter of a core.)
inline void YieldToEngines() { static_cast<void>(!nice(5)); }

}  // namespace linnet::server
