#!/bin/sh
# Writes report.md from what the others left.
AGENT=reporter
. "$(dirname "$0")/lib.sh"
progress "writing report.md"
section() { printf '\n## %s\n\n' "$1"; }
{
  printf '# Report\n\n%s pages were checked.\n' "$(wc -l < inventory.txt | tr -d ' ')"
  for phase in links headings front-matter; do
    section "Found by $phase"
    sed '1s/^/- /; 2,$s/^/  - /' "$CLIQ_DIR/channels/$phase--quality/handoff.md"
  done
  section "Repaired"
  if [ -f "$CLIQ_DIR/files/fixer/repairs.txt" ]; then sed 's/^/- /' "$CLIQ_DIR/files/fixer/repairs.txt"; else echo "Nothing had to be."; fi
  section "Now"
  cat "$CLIQ_DIR/channels/quality--report/handoff.md" | sed -n 's/^- /- /p'
} > report.md.new
mv report.md.new report.md
printf 'wrote report.md\n'
complete
