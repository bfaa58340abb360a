#!/bin/sh
# Runs the check of its phase's name and hands over what it found.
AGENT=inspector
. "$(dirname "$0")/lib.sh"
progress "checking $(wc -l < inventory.txt | tr -d ' ') pages"
found=$(sh "checks/$CLIQ_PHASE.sh")
count=$(printf '%s' "$found" | grep -c .)
if [ "$count" -eq 0 ]; then text="Nothing wrong."; else text="$count problems:
$found"; fi
printf '%s\n' "$text"
hand_over quality "$text" "{\"problems\":$(list "$found"),\"count\":$count}"
complete
