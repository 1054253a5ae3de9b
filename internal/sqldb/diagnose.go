package sqldb

import "context"

// Diagnosis is the result of a driver's check of a database setting.
type Diagnosis struct {
	// Name is the setting that was checked, and Found its value.
	Name, Found string
	// Problem describes the problem. Empty: none.
	Problem string
	// Broken is true if guarantees do not hold with this setting.
	Broken bool
}

// Diagnoser is a DB that can check its own settings.
type Diagnoser interface {
	Diagnose(ctx context.Context) ([]Diagnosis, error)
}
