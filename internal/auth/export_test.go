package auth

// Tracked returns how many addresses are remembered.
func (a *Access) Tracked() int { return len(a.limiter.addresses.byKey) }
