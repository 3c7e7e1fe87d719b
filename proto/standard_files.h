// Standard files of a program, for the whole tree (see status_macros.h for why it is here).
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace linnet {

// Opens /dev/null in place of closed standard files, so that no socket gets their numbers: what is
// printed or logged would be sent to its peer. Using them still fails: it is opened to write as
// standard input, and to read as the other two. Call it first in main.
inline void OpenStandardFiles() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) == 0) continue;
    // It was closed, also if it has FD_CLOEXEC now: gRPC's initialisation, before main, leaves an
    // unused eventfd behind as file 0.
    close(file);
    // A new file gets the lowest free number, which is this one.
    open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace linnet
