#pragma once

namespace linnet::model {

// libgomp's threads spin while they wait for work. On a machine whose cores are shared (with gRPC's
// threads, or with other programs) a step on two threads then takes twice as long as it should,
// because the spinning thread holds the core that the other needs. The policy can only be set
// before libgomp is loaded, so this starts the program anew with OMP_WAIT_POLICY=passive, once, and
// only if the environment names no policy. Call it first thing in main.
void WaitPassively(char** argv);

}  // namespace linnet::model
