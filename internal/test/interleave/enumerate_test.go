package interleave

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// multinomial returns how many merges sequences of these lengths have.
func multinomial(lengths []int) int {
	result, total := 1, 0
	for _, n := range lengths {
		for i := 1; i <= n; i++ {
			total++
			result = result * total / i // a binomial coefficient after each round: exact
		}
	}
	return result
}

func TestMergesOfTwoSessionsAreBinomial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, m, want int }{
		{0, 0, 1}, {0, 3, 1}, {1, 1, 2}, {2, 2, 6}, {3, 2, 10}, {4, 4, 70}, {6, 5, 462},
	} {
		if got := len(Merges(c.n, c.m)); got != c.want {
			t.Errorf("%d and %d steps: %d merges, want %d", c.n, c.m, got, c.want)
		}
	}
}

func TestMergesAreAllDifferentAndKeepEachSequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 3).Draw(t, "lengths")
		merges := Merges(lengths...)
		if len(merges) != multinomial(lengths) {
			t.Fatalf("%d merges, want %d", len(merges), multinomial(lengths))
		}
		seen := map[string]bool{}
		for _, m := range merges {
			if key := fmt.Sprint(m); seen[key] {
				t.Fatalf("%v twice", m)
			} else {
				seen[key] = true
			}
			for i, n := range lengths {
				if got := len(slices.DeleteFunc(slices.Clone(m), func(x int) bool { return x != i })); got != n {
					t.Fatalf("%v has %d elements of sequence %d, want %d", m, got, i, n)
				}
			}
		}
	})
}

func TestTheWalkEndsWhenTheTreeChangesUnderIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e enumerator
		paths := 0
		for more := true; more; more = e.advance() {
			if paths++; paths > 1000 {
				t.Fatal("the walk does not end")
			}
			e.begin()
			for range rapid.IntRange(0, 4).Draw(t, "length") {
				n := rapid.IntRange(1, 2).Draw(t, "choices")
				ready := []int{0, 1, 2}[:n]
				did := rapid.SampledFrom([]footprint{reads, writes, anything}).Draw(t, "did")
				if got := e.choose(ready, did); !slices.Contains(ready, got) {
					t.Fatalf("choice %d of %v", got, ready)
				}
			}
		}
	})
}
