// Package stacks tests Perdure in applications that use pgx, sqlc, database/sql, GORM, bun,
// ent and sqlx.
//
// It is a module of its own, so that the modules of these libraries never reach the module
// graph of a user.
package stacks
