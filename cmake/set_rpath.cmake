# Sets the RPATH of a program or library to one folder: cmake -DFILE=… -DRPATH='$ORIGIN/../lib' -P
# This removes the build folders: a package must not load files of the machine that built it.
file(RPATH_SET FILE "${FILE}" NEW_RPATH "${RPATH}")
