# Which pages to check: those named, else all.
pages() { if [ $# -gt 0 ]; then printf '%s\n' "$@"; else find pages -name '*.md' | sort; fi; }
# Passes if nothing was found.
verdict() { if [ -n "$1" ]; then printf '%s\n' "$1"; exit 1; fi; }
