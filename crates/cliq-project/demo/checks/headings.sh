# Every page has one first heading, and no heading skips a level.
. checks/lib.sh
verdict "$(pages "$@" | while IFS= read -r page; do
  awk -v page="$page" '
    /^```/ { fence = !fence }
    fence || !/^#+ / { next }
    { match($0, /^#+/); level = RLENGTH
      if (level > last + 1) print page ":" NR ": heading of level " level " follows level " last + 0
      if (level == 1 && ++first == 2) print page ":" NR ": a second first heading"
      last = level }
    END { if (!first) print page ":1: no first heading" }' "$page"
done)"
