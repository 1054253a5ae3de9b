package pull

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
)

// The namespaces of hooks that workers have served are settings, so that hooks can be triggered in
// them while no worker is connected.

func namespaceSetting(namespace string) string { return "worker.namespace." + namespace }

// recordNamespace records that workers serve the hooks of a namespace.
func (b *Broker) recordNamespace(namespace string) error {
	name, known := namespaceSetting(namespace), false
	ctx, cancel := context.WithTimeout(context.Background(), b.rt.Timeout)
	defer cancel()
	err := unit.Transact(ctx, b.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		if err := tx.Run(ctx, b.rt.Store.GetSetting(name, func(string) { known = true })); err != nil || known {
			return err
		}
		return tx.Run(ctx, b.rt.Store.PutSetting(name, "served")...)
	})
	if err != nil {
		return fmt.Errorf("record namespace %s: %w", namespace, err)
	}
	return nil
}

// Hooks returns the hooks of a namespace that workers have served, to trigger them. It returns nil
// if no worker has served the namespace.
func (b *Broker) Hooks(namespace string) (*hook.Hooks, error) {
	b.mu.Lock()
	hooks := b.hooks[namespace]
	b.mu.Unlock()
	if hooks != nil {
		return hooks, nil
	}
	known := false
	ctx, cancel := context.WithTimeout(context.Background(), b.rt.Timeout)
	defer cancel()
	err := unit.Once(ctx, b.rt.DB, sqldb.Look, func(tx sqldb.Tx) error {
		return tx.Run(ctx, b.rt.Store.GetSetting(namespaceSetting(namespace), func(string) { known = true }))
	})
	if err != nil || !known {
		return nil, err
	}
	if hooks, err = hook.New(b.eng, namespace, &hook.Options{OnError: b.options.OnError}); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks[namespace] = hooks
	return hooks, nil
}
