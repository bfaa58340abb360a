# Every relative link leads to a file.
. checks/lib.sh
verdict "$(pages "$@" | while IFS= read -r page; do
  awk '
    /^```/ { fence = !fence }
    fence { next }
    { rest = $0
      while (match(rest, /\]\([^)]*\)/)) {
        print NR " " substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH) } }' "$page" |
  while read -r line target; do
    case "$target" in http://* | https://* | mailto:* | \#* | "") continue ;; esac
    [ -e "$(dirname "$page")/${target%%#*}" ] || printf '%s:%s: link to %s leads nowhere\n' "$page" "$line" "$target"
  done
done)"
