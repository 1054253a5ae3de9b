package telemetry

import (
	"fmt"
	"strings"
)

// Reference returns the metrics as a page of documentation.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n")
	b.WriteString("`perdure serve` and `perdure dev` export these at `/metrics`, in the text format of Prometheus. This page is generated from the\n")
	b.WriteString("code; `deploy/grafana/perdure.json` is a dashboard for them.\n\n")
	b.WriteString("Counters and histograms belong to one process and start at 0 with it. Values from the database are the same in all processes. Labels are\n")
	b.WriteString("never ids.\n\n")
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range Metrics {
		labels := "–"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
	}
	b.WriteString("\nHistograms also have `_bucket`, `_sum` and `_count`.\n")
	return b.String()
}
