package task_test

import "github.com/perdure/perdure/internal/torture"

// roles are what this binary does as a child of a test.
var roles = map[string]torture.Role{}
