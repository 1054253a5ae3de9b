//go:build !unix

package testdb

import (
	"os"
	"syscall"
)

// owner is always the current user on this system.
type owner struct{}

func serverOwner() (owner, error)           { return owner{}, nil }
func (owner) apply(*syscall.SysProcAttr)    {}
func (owner) own(string) error              { return nil }
func (owner) canEnter(path string) error    { _, err := os.Stat(path); return err }
func acquire(path string) (*os.File, error) { return os.Create(path) }
