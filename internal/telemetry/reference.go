package telemetry

import (
	"fmt"
	"strings"
)

// Reference returns the metrics as a page of documentation.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n")
	b.WriteString("`perdure serve` and `perdure dev` export these at `/metrics`, in the text form of Prometheus. This page is made from the\n")
	b.WriteString("code; `deploy/grafana/perdure.json` is a dashboard of them.\n\n")
	b.WriteString("Counters and histograms are of one process and begin at 0 when it starts; what is in the database is the same for all. Labels are\n")
	b.WriteString("never ids.\n\n")
	b.WriteString("| metric | type | labels | what it tells |\n|---|---|---|---|\n")
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
