#!/bin/sh
# Installs cliq from an archive of a release, for one user: programs, man pages, completions. Checks the archive against SHA256SUMS, and
# never asks for root.
#
#     install.sh --from URL|DIR [--to DIR] [--version VERSION] [--only-programs]
#
# URL or DIR has the archives and SHA256SUMS. Without --to the programs go into ~/.local/bin. Man pages and completions go below
# ~/.local/share and ~/.config/fish; not with --only-programs. Needs tar, gzip, sha256sum or shasum, and for a URL curl or wget.
set -eu

say() { printf '%s\n' "$*"; }
fail() {
  printf 'install.sh: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

from=${CLIQ_RELEASE:-} to= version= extras=1
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" 2>/dev/null || true; }
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --only-programs)
      extras=
      shift
      ;;
    --from | --to | --version)
      [ -n "${2:-}" ] || fail "$1 needs a value"
      case $1 in --from) from=$2 ;; --to) to=$2 ;; *) version=$2 ;; esac
      shift 2
      ;;
    *)
      usage >&2
      fail "there is no option $1"
      ;;
  esac
done
[ -n "$from" ] || fail "it is not said where the archives are" "--from URL or DIR, or the variable CLIQ_RELEASE"
: "${HOME:?install.sh: HOME is not set}"
to=${to:-$HOME/.local/bin}
case $to in /*) ;; *) to=$PWD/$to ;; esac
case $version in *[!0-9A-Za-z.+-]*) fail "$version is no version" ;; esac

case $(uname -s) in
  Linux) system=unknown-linux-gnu ;;
  Darwin) system=apple-darwin ;;
  *) fail "there is no archive for $(uname -s)" "with a Rust toolchain: cargo install --locked --path bins/cliq" ;;
esac
case $(uname -m) in
  x86_64 | amd64) target=x86_64-$system ;;
  aarch64 | arm64) target=aarch64-$system ;;
  *) fail "there is no archive for a processor $(uname -m)" ;;
esac

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 1' HUP INT TERM

get() {
  case $from in
    http://* | https://*)
      if has curl; then
        curl --fail --silent --show-error --location --proto '=http,https' --output "$place/$1" "${from%/}/$1"
      elif has wget; then
        wget --quiet --output-document="$place/$1" "${from%/}/$1"
      else
        fail "neither curl nor wget is here"
      fi || fail "cannot fetch ${from%/}/$1"
      ;;
    *) cp -- "$from/$1" "$place/$1" || fail "cannot read $from/$1" ;;
  esac
}

get SHA256SUMS
# Lines are `SUM  NAME`. Names of archives are cliq-VERSION-TARGET.tar.gz.
wanted=$(printf '%s' "${version:-}" | sed 's/[.+]/\\&/g')
line=$(tr -d '\r' <"$place/SHA256SUMS" | grep -E "^[0-9a-f]{64} [ *]cliq-${wanted:-[0-9][0-9A-Za-z.+-]*}-$target\.tar\.gz\$") ||
  fail "SHA256SUMS of $from has no archive ${version:+of version $version }for $target"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "SHA256SUMS of $from has several versions for $target" "--version VERSION"
sum=${line%% *}
archive=${line##*[ *]}
get "$archive"
if has sha256sum; then
  found=$(sha256sum "$place/$archive")
elif has shasum; then
  found=$(shasum -a 256 "$place/$archive")
else
  fail "neither sha256sum nor shasum is here: the archive cannot be checked"
fi
[ "${found%% *}" = "$sum" ] ||
  fail "$archive is not the one of SHA256SUMS: it has ${found%% *}, not $sum" "nothing was installed; fetch it again, or ask who publishes it"

mkdir "$place/new"
tar -xzf "$place/$archive" -C "$place/new" --strip-components=1 || fail "$archive cannot be unpacked"
"$place/new/cliq" --version >/dev/null || fail "the program in $archive does not start on this system"

# To a name beside, and then in one step: a program at work keeps its file.
put() {
  mkdir -p "$2" 2>/dev/null && [ -w "$2" ] || fail "$2 cannot be written" "--to DIR names a directory of yours"
  cp "$1" "$2/.${1##*/}.new" && mv -f "$2/.${1##*/}.new" "$2/${1##*/}" || fail "$2/${1##*/} cannot be written"
}
for program in cliq cliq-agent; do put "$place/new/$program" "$to"; done
if [ -z "$extras" ]; then
  say "installed: $("$to/cliq" --version) in $to"
  exit 0
fi
data=${XDG_DATA_HOME:-$HOME/.local/share}
for page in "$place"/new/man/man1/*.1; do put "$page" "$data/man/man1"; done
mv "$place/new/completions/cliq.bash" "$place/new/completions/cliq"
put "$place/new/completions/cliq" "$data/bash-completion/completions"
put "$place/new/completions/_cliq" "$data/zsh/site-functions"
put "$place/new/completions/cliq.fish" "${XDG_CONFIG_HOME:-$HOME/.config}/fish/completions"

say "installed: $("$to/cliq" --version) in $to"
case :$PATH: in
  *":$to:"*) ;;
  *) say "hint: $to is not on your PATH: add export PATH=\"$to:\$PATH\" to the file that your shell reads at its start" ;;
esac
say "try: cliq demo"
