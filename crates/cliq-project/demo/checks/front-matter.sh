# Every page begins with front matter that has a title.
. checks/lib.sh
verdict "$(pages "$@" | while IFS= read -r page; do
  awk -v page="$page" '
    NR == 1 && $0 != "---" { exit }
    NR > 1 && $0 == "---" { exit }
    /^title: *[^ ]/ { found = 1; exit }
    END { if (!found) print page ":1: front matter has no title" }' "$page"
done)"
