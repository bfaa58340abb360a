#!/bin/sh
# Repairs what is certain: a missing title, a heading that skips a level, a link to a page that has moved.
AGENT=fixer
. "$(dirname "$0")/lib.sh"
done_=""
did() { done_="$done_$1
"; printf '%s\n' "$1"; progress "$1"; }

replace() { mv "$1.new" "$1"; }

fix_title() {
  title=$(awk '/^# / { sub(/^# +/, ""); print; exit }' "$1")
  [ -n "$title" ] || title=$(basename "$1" .md)
  if [ "$(head -n 1 "$1")" = "---" ]; then
    awk -v title="$title" 'NR == 1 { print; print "title: " title; next } { print }' "$1" > "$1.new"
  else
    { printf -- '---\ntitle: %s\n---\n\n' "$title"; cat "$1"; } > "$1.new"
  fi
  replace "$1"
  did "$1: gave it the title \"$title\""
}

fix_headings() {
  awk '
    /^```/ { fence = !fence }
    !fence && /^#+ / {
      match($0, /^#+/); level = RLENGTH
      if (level > last + 1) { level = last + 1 }
      if (level == 1 && seen) { level = 2 }
      if (level == 1) { seen = 1 }
      last = level
      text = $0; sub(/^#+/, "", text)
      hashes = ""; for (i = 0; i < level; i++) { hashes = hashes "#" }
      print hashes text; next
    }
    { print }' "$1" > "$1.new"
  if cmp -s "$1" "$1.new"; then rm "$1.new"; else replace "$1"; did "$1: headings follow one another"; fi
}

# fix_link PAGE TARGET: where one page alone has the target's name, link there.
fix_link() {
  name=$(basename "${2%%#*}")
  places=$(grep "/$name\$" inventory.txt)
  [ "$(printf '%s\n' "$places" | grep -c .)" -eq 1 ] || return 0
  up=""
  dir=$(dirname "$1")
  while [ "$dir" != "pages" ] && [ "$dir" != "." ]; do up="../$up"; dir=$(dirname "$dir"); done
  new="$up${places#pages/}"
  awk -v old="]($2)" -v new="]($new)" '{
    out = ""; rest = $0
    while ((at = index(rest, old)) > 0) { out = out substr(rest, 1, at - 1) new; rest = substr(rest, at + length(old)) }
    print out rest }' "$1" > "$1.new"
  replace "$1"
  did "$1: the link to $2 leads to $new"
}

while IFS= read -r page; do
  case "$(sh checks/front-matter.sh "$page")" in ?*) fix_title "$page" ;; esac
  fix_headings "$page"
  sh checks/links.sh "$page" | sed -n 's/.*: link to \(.*\) leads nowhere$/\1/p' | sort -u > .links
  while IFS= read -r target; do fix_link "$page" "$target"; done < .links
done < inventory.txt
rm -f .links

done_=$(printf '%s' "$done_" | grep .)
hand_over quality "Repaired:
$done_" "{\"repairs\":$(list "$done_"),\"count\":$(printf '%s\n' "$done_" | grep -c .)}"
# The report is written from this file: the handoff goes to the gate alone.
mkdir -p "$CLIQ_DIR/files/$CLIQ_PHASE"
printf '%s\n' "$done_" >> "$CLIQ_DIR/files/$CLIQ_PHASE/repairs.txt"
complete
