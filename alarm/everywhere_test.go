package alarm_test

import "github.com/perdure/perdure/internal/test/enginetest"

// databases are the databases of conformance tests.
var databases = enginetest.Names
