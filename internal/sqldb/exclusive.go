package sqldb

// PostgresMigrations creates the table in which PostgreSQL's migrations are recorded. The
// driver locks the table while one process migrates. Roles without privileges on the table,
// such as the worker of tasks, cannot lock it.
var PostgresMigrations = []string{
	"create schema if not exists perdure",
	"create table if not exists perdure.migrations (version integer primary key, name text not null, checksum text not null, applied_at timestamptz not null)",
}
