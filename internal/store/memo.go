package store

import "sync"

// memo caches a value for each key. Each value is computed once. The values must not be
// changed.
type memo[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// get returns the value of key. If a computation fails, the next call repeats it.
func (m *memo[K, V]) get(key K, compute func() (V, error)) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.values[key]; ok {
		return v, nil
	}
	v, err := compute()
	if err != nil {
		return v, err
	}
	if m.values == nil {
		m.values = map[K]V{}
	}
	m.values[key] = v
	return v, nil
}
