package telemetry

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/histogram"
)

// contentType is that of Prometheus' text form.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// samples gathers the values of metrics, each metric together.
type samples map[*Metric]*strings.Builder

// add notes a value. The labels are in the order of the metric's.
func (s samples) add(m *Metric, value float64, labels ...string) {
	s.line(m, "", value, m.Labels, labels)
}

// addHistogram notes what a histogram has counted.
func (s samples) addHistogram(m *Metric, c histogram.Counts, labels ...string) {
	names := append(append([]string{}, m.Labels...), "le")
	var total int64
	for i, n := range c.Buckets {
		total += n
		bound := "+Inf"
		if i < len(histogram.Bounds) {
			bound = number(histogram.Bounds[i].Seconds())
		}
		s.line(m, "_bucket", float64(total), names, append(append([]string{}, labels...), bound))
	}
	s.line(m, "_sum", c.Sum.Seconds(), m.Labels, labels)
	s.line(m, "_count", float64(total), m.Labels, labels)
}

func (s samples) line(m *Metric, suffix string, value float64, names, values []string) {
	b := s[m]
	if b == nil {
		b = &strings.Builder{}
		s[m] = b
	}
	b.WriteString(m.Name + suffix)
	for i, name := range names {
		if i == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(name + `="` + escapeLabel.Replace(values[i]) + `"`)
	}
	if len(names) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + number(value) + "\n")
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// write writes what was gathered, in the order of Metrics.
func (s samples) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, m := range Metrics {
		if s[m] == nil {
			continue
		}
		_, _ = out.WriteString("# HELP " + m.Name + " " + escapeHelp.Replace(m.Help) + "\n") // Flush returns the error
		_, _ = out.WriteString("# TYPE " + m.Name + " " + string(m.Type) + "\n")
		_, _ = out.WriteString(s[m].String())
	}
	return out.Flush()
}
