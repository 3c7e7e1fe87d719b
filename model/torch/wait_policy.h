#pragma once

namespace linnet::model {

// How libgomp's threads wait for work. Left alone they spin for long: on a machine whose cores are
// shared (with gRPC's threads, or with other programs) a step on two threads then takes twice as
// long as it should, because the spinning thread holds the core that the other needs. Were they to
// sleep at once, waking them would take most of a short step: a step has dozens of parallel
// regions, tens of microseconds apart. So they spin for about half a millisecond, which no pause
// within a step reaches, and then sleep. Measured (base model, int8, two cores, one sentence, beam
// 1 and 5, target tokens/s): asleep at once 424 and 200, 1000 rounds 491 and 479, 10000 rounds 757
// and 646.
//
// That can only be set before libgomp is loaded, so this starts the program anew, once, with
// OMP_WAIT_POLICY=passive and GOMP_SPINCOUNT, and only if the environment names neither. Call it
// first thing in main.
void WaitPassively(char** argv);

}  // namespace linnet::model
