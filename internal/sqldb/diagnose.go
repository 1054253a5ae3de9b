package sqldb

import "context"

// Diagnosis is what a driver finds when it looks at its database's settings.
type Diagnosis struct {
	// Name is what was looked at, and Found what there is.
	Name, Found string
	// Problem says what is wrong with it. Empty: nothing.
	Problem string
	// Broken says that promises do not hold while it is so.
	Broken bool
}

// Diagnoser is a DB that can look at its own settings.
type Diagnoser interface {
	Diagnose(ctx context.Context) ([]Diagnosis, error)
}
