package edge

// Default sets an option that has the zero value.
func Default[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}
