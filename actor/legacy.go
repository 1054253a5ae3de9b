package actor

// KV is a store of keys and values of an earlier system.
type KV interface{}
