//go:build 386 || arm || mips || mipsle

package perdure

// Counts, such as that of missed ticks, are as wide as int. With 32 bits they would
// overflow silently, so the build ends here.
var _ = perdure_needs_a_64_bit_platform
