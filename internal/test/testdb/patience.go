package testdb

import "time"

// Patience is the time limit for anything that a test waits for. It is far more than any
// wait takes, even on a host whose cores are busy: a test that reaches it hangs. No test
// has its own limit that a slow host could reach.
const Patience = 4 * time.Minute
