package deploy_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/telemetry"
)

var selector = regexp.MustCompile(`\(([a-z, ]+)\)|\$labels\.([a-z]+)|(perdure_[a-z_]+)`)

// The rules use metrics that exist, and only labels that these have. Each has a severity, and
// texts that say what to do.
func TestTheRulesUseMetricsAndLabelsThatExist(t *testing.T) {
	t.Parallel()
	rules := strings.Split(read(t, filepath.Join("prometheus", "perdure.rules.yaml")), "- alert: ")[1:]
	if len(rules) < 8 {
		t.Fatalf("there are %d rules", len(rules))
	}
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "\n")
		for _, part := range []string{"\n        expr: ", "labels: {severity: ", "summary: \"", "description: \""} {
			if !strings.Contains(rule, part) {
				t.Errorf("%s has no %s", name, strings.TrimSpace(part))
			}
		}
		var labels, used []string
		for _, found := range selector.FindAllStringSubmatch(rule, -1) {
			switch {
			case found[3] != "":
				i := slices.IndexFunc(telemetry.Metrics, func(m *telemetry.Metric) bool { return m.Name == found[3] })
				if i < 0 {
					t.Errorf("%s: there is no metric %s", name, found[3])
					continue
				}
				labels = append(labels, telemetry.Metrics[i].Labels...)
			case found[2] != "":
				used = append(used, found[2])
			default:
				used = append(used, strings.Split(found[1], ", ")...)
			}
		}
		for _, label := range used {
			if label != "instance" && !slices.Contains(labels, label) {
				t.Errorf("%s: its metrics have no label %s, but %v", name, label, labels)
			}
		}
	}
}
