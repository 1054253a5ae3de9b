package fsm_test

import "github.com/perdure/perdure/internal/test/enginetest"

// everywhere are the databases of conformance tests.
var everywhere = enginetest.Names
