#!/bin/sh
# Tests average.sh.
check() { # check EXPECTED ARGUMENT...
  expected=$1
  shift
  output=$(sh average.sh "$@" 2>&1)
  [ "$output" = "$expected" ] || { echo "average.sh $*: expected $expected, output $output"; exit 1; }
}
check 2 1 2 3
check 1.5 1 2
check none
