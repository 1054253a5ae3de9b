package telemetry

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/histogram"
)

// contentType is the content type of the Prometheus text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Sample is a value of a metric.
type Sample struct {
	*Metric
	// Values are the values of the labels, in the order of the metric's labels.
	Values []string
	// Value is the value of a counter or a gauge. Counts are the counts of a histogram.
	Value  float64
	Counts histogram.Counts
}

// samples collects values, grouped by metric.
type samples map[*Metric][]Sample

// add records a value. The labels are in the order of the metric's labels.
func (s samples) add(m *Metric, value float64, labels ...string) {
	s[m] = append(s[m], Sample{Metric: m, Values: labels, Value: value})
}

// addHistogram records the counts of a histogram.
func (s samples) addHistogram(m *Metric, c histogram.Counts, labels ...string) {
	s[m] = append(s[m], Sample{Metric: m, Values: labels, Counts: c})
}

// all returns the collected samples, in the order of Metrics.
func (s samples) all() []Sample {
	var all []Sample
	for _, m := range Metrics {
		all = append(all, s[m]...)
	}
	return all
}

// text writes a sample in the Prometheus text format.
func (s Sample) text(b *bufio.Writer) {
	if s.Type != Histogram {
		s.line(b, "", s.Value, s.Labels, s.Values)
		return
	}
	names := append(append([]string{}, s.Labels...), "le")
	var total int64
	for i, n := range s.Counts.Buckets {
		total += n
		bound := "+Inf"
		if i < len(histogram.Bounds) {
			bound = number(histogram.Bounds[i].Seconds())
		}
		s.line(b, "_bucket", float64(total), names, append(append([]string{}, s.Values...), bound))
	}
	s.line(b, "_sum", s.Counts.Sum.Seconds(), s.Labels, s.Values)
	s.line(b, "_count", float64(total), s.Labels, s.Values)
}

// line writes one value. The last Flush returns its errors.
func (s Sample) line(b *bufio.Writer, suffix string, value float64, names, values []string) {
	_, _ = b.WriteString(s.Name + suffix)
	for i, name := range names {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		_, _ = b.WriteString(separator + name + `="` + escapeLabel.Replace(values[i]) + `"`)
	}
	if len(names) > 0 {
		_ = b.WriteByte('}')
	}
	_, _ = b.WriteString(" " + number(value) + "\n")
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

// write writes the collected samples, in the order of Metrics.
func (s samples) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, m := range Metrics {
		if s[m] == nil {
			continue
		}
		_, _ = out.WriteString("# HELP " + m.Name + " " + escapeHelp.Replace(m.Help) + "\n") // Flush returns the error
		_, _ = out.WriteString("# TYPE " + m.Name + " " + string(m.Type) + "\n")
		for _, sample := range s[m] {
			sample.text(out)
		}
	}
	return out.Flush()
}
