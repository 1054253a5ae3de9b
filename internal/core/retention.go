package core

import "time"

// DeadRetention is the default time that dead letters of every kind are kept: work
// that failed or was quarantined.
const DeadRetention = 30 * 24 * time.Hour
