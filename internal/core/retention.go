package core

import "time"

// DeadRetention is the default retention of dead letters of every kind: failed and
// quarantined work.
const DeadRetention = 30 * 24 * time.Hour
