#!/bin/sh
# Fills a database of each kind and dumps it to the directory $1.
# Run it with: go run ./internal/test/testdb/run -- sh internal/test/generate/generate.sh DIRECTORY
set -e
cd "$(dirname "$0")"
out=$1
rm -f "$out"/fixture.db* "$out"/*.sql "$out"/*.gz "$out"/*.json
postgres=$(echo "$PERDURE_TEST_POSTGRES" | sed 's#/postgres#/fixture#')
url=${PERDURE_TEST_MYSQL#mysql://}
address=${url#*@}
port=${address#*:}
account="-h ${address%%:*} -P ${port%%/*} --protocol=tcp -u ${url%%@*}"
psql -q "$PERDURE_TEST_POSTGRES" -c 'create database fixture'
mariadb $account -e 'create database fixture'
go run . "$out" "sqlite:$out/fixture.db" "$postgres" "mysql://${url%/*}/fixture"

sqlite3 "$out/fixture.db" "vacuum into '$out/sqlite.db'"
rm -f "$out"/fixture.db*

# The tables of the user, and the rows of Perdure's own tables: the test makes those by the
# migrations whose checksums the rows have.
{
	pg_dump --no-owner --no-privileges --inserts --schema=bank "$postgres"
	pg_dump --data-only --column-inserts --exclude-schema=bank "$postgres"
} | grep -v -e '^SET ' -e '^SELECT pg_catalog.set_config' -e '^.restrict ' -e '^.unrestrict ' > "$out/postgres.sql"

mariadb-dump $account --compact --skip-extended-insert --complete-insert --hex-blob fixture | grep -v -e '^/\*M\?!' > "$out/mysql.sql"
gzip -9n "$out/sqlite.db"
