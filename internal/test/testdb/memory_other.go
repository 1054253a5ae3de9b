//go:build !linux

package testdb

func memoryDirectory() string { return "" }
