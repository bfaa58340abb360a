#!/bin/sh
# Tests greet.sh. Prints each failure; the exit status is their number.
failures=0
check() { # check EXPECTED ARGUMENT...
  expected=$1
  shift
  output=$(sh greet.sh "$@" 2>/dev/null; echo "status $?")
  [ "$output" = "$expected" ] && return
  failures=$((failures + 1))
  printf 'greet.sh %s:\n  expected: %s\n  output:   %s\n' "$*" "$(echo "$expected" | tr '\n' ' ')" "$(echo "$output" | tr '\n' ' ')"
}

check 'Hello, Ana!
status 0' Ana

exit $failures
