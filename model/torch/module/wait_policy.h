#pragma once

namespace linnet::model {

// Makes libgomp's idle threads spin for about half a millisecond and then sleep. By default they
// spin for long: on a machine with shared cores (gRPC's threads, other programs) a step on two
// threads then takes twice as long, because a spinning thread holds the core that the other one
// needs. Sleeping at once would cost most of a short step in wake-ups: a step has dozens of
// parallel regions, tens of microseconds apart. No pause within a step reaches half a millisecond.
// Measured (base model, int8, two cores, one sentence, beam 1 and 5, target tokens/s): sleeping at
// once 424 and 200, 1000 rounds 491 and 479, 10000 rounds 757 and 646.
//
// libgomp reads its settings when it is loaded, so this function executes the program again, once,
// with OMP_WAIT_POLICY=passive and GOMP_SPINCOUNT set, unless the environment has one of them. Call
// it first in main.
void WaitPassively(char** argv);

}  // namespace linnet::model
