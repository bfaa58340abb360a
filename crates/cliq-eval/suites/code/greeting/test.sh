#!/bin/sh
# Tests greet.sh.
[ "$(sh greet.sh Ana)" = "Hello, Ana!" ] || { echo "greet.sh Ana: wrong greeting"; exit 1; }
sh greet.sh > /dev/null 2> message
[ $? -eq 2 ] || { echo "greet.sh without a name: the status is not 2"; exit 1; }
[ -s message ] || { echo "greet.sh without a name: no message"; exit 1; }
rm -f message
