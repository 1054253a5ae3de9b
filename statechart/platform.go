//go:build 386 || arm || mips || mipsle

package statechart

// Numbers in expressions are as wide as int. With 32 bits they would overflow where XState's
// numbers do not, so the build fails here.
var _ = statecharts_need_a_64_bit_platform
