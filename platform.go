//go:build 386 || arm || mips || mipsle

package perdure

// Counts, such as the number of missed ticks, have type int. With 32 bits they would
// overflow silently, so the build fails here.
var _ = perdure_needs_a_64_bit_platform
