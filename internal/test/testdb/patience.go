package testdb

import "time"

// Patience bounds whatever a test waits for. It is far more than any wait takes, also
// on a host whose cores are busy: a test that reaches it hangs. No test has a bound
// of its own that a slow host could reach.
const Patience = 4 * time.Minute
