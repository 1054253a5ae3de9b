package perdure_test

// child is what the test binary does as another process.
func child(role string) int { return 2 }
