# Makes a program or library look for what it needs in one place alone: cmake -DFILE=… -DRPATH='$ORIGIN/../lib' -P
# The build's own folders go with that: a package must not load what lies on the machine that built it.
file(RPATH_SET FILE "${FILE}" NEW_RPATH "${RPATH}")
