#!/usr/bin/env bash
# Checks that what the tests need is installed: Go, gcc (the race detector
# needs it), Python, curl, groff, Chromium, PgBouncer, and the programs of a PostgreSQL and
# a MariaDB server, also as a Galera cluster. The servers need not run; the tests start their own.
#
# Installs what is missing if that can be done without asking: as root, with
# apt-get. Otherwise it says what to install and fails.
set -euo pipefail

min_postgres=14

has_go() { command -v go >/dev/null; }

has_gcc() { command -v gcc >/dev/null || command -v clang >/dev/null; }

# Debian keeps PostgreSQL's server programs off the PATH, by version.
postgres_dirs() {
  local initdb
  if initdb=$(command -v initdb); then dirname "$initdb"; fi
  printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin
}

has_postgres() {
  local dir version
  while read -r dir; do
    [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] || continue
    version=$("$dir/postgres" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')
    if [ "$version" -ge "$min_postgres" ]; then return 0; fi
  done < <(postgres_dirs)
  return 1
}

has_mariadb() {
  local PATH=$PATH:/usr/sbin:/usr/local/sbin:/opt/homebrew/opt/mariadb/bin
  command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null
}

# A node of a cluster copies its data to another with rsync.
has_galera() {
  local file
  command -v rsync >/dev/null || return 1
  for file in /usr/lib/galera/libgalera_smm.so /usr/lib64/galera-4/libgalera_smm.so /usr/lib/galera-4/libgalera_smm.so /opt/homebrew/lib/libgalera_smm.so; do
    if [ -e "$file" ]; then return 0; fi
  done
  return 1
}

has_pgbouncer() {
  local PATH=$PATH:/usr/sbin:/usr/local/sbin:/opt/homebrew/bin
  command -v pgbouncer >/dev/null
}

has_python() { command -v python3 >/dev/null; }

# Modules of the clients in the tests of SQL functions. The tests look in these interpreters.
has_module() { python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null; }

has_rails() { ruby -e "require 'active_record'; require 'pg'" >/dev/null 2>&1; }

has_psql() { command -v psql >/dev/null; }

has_curl() { command -v curl >/dev/null; }

has_groff() { command -v groff >/dev/null; }

has_chromium() {
  local name
  [ -z "${PERDURE_TEST_CHROMIUM:-}" ] || return 0
  for name in chromium-headless-shell headless-shell chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

# A line each: the Debian packages, then what they are.
missing() {
  has_gcc || echo "gcc libc6-dev|a C compiler, for the race detector"
  has_postgres || echo "postgresql|the PostgreSQL server, version $min_postgres or newer"
  has_mariadb || echo "mariadb-server|the MariaDB server, version 10.6 or newer"
  has_galera || echo "galera-4 rsync iproute2|Galera 4 and rsync, for a cluster of MariaDB servers"
  has_pgbouncer || echo "pgbouncer|PgBouncer, a pooler for PostgreSQL"
  has_chromium || echo "chromium-headless-shell|Chromium, for the tests of the dashboard"
  has_python || echo "python3|Python 3, for the example in another language"
  has_module psycopg || echo "python3-psycopg|psycopg 3, for the tests of SQL functions"
  has_module "django, psycopg2" || echo "python3-django python3-psycopg2|Django and psycopg2, for the tests of SQL functions"
  has_rails || echo "ruby ruby-activerecord ruby-pg|ActiveRecord, for the tests of SQL functions"
  has_psql || echo "postgresql-client|psql, for the tests of SQL functions"
  has_curl || echo "curl|curl, for the commands of the documentation"
  has_groff || echo "groff-base|groff, for the manual pages"
}

# Installs packages without starting their services, which Debian does unless
# this file forbids it.
install() {
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    # shellcheck disable=SC2064 # the path is known now
    trap "rm -f '$policy'" EXIT
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get -o DPkg::Lock::Timeout=300 update
  apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

explain() {
  echo "The tests need:" >&2
  while IFS='|' read -r packages what; do
    echo "  - $what (Debian: apt-get install $packages)" >&2
  done <<<"$1"
  echo "Or name servers and a browser of your own in PERDURE_TEST_POSTGRES, PERDURE_TEST_MYSQL and PERDURE_TEST_CHROMIUM and run 'go test ./...'." >&2
}

main() {
  if ! has_go; then
    echo "Go is not installed; go.mod says which version is needed." >&2
    exit 1
  fi
  local needed
  needed=$(missing)
  [ -n "$needed" ] || return 0
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    # shellcheck disable=SC2046 # package names are separate words
    install $(cut -d'|' -f1 <<<"$needed")
    needed=$(missing)
    [ -n "$needed" ] || return 0
  fi
  explain "$needed"
  exit 1
}

main
