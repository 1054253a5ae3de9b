package doctor

import (
	"fmt"
	"strings"
)

// Reference returns the checks as a page of documentation.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# perdure doctor

` + "`perdure doctor`" + ` checks a database for inconsistencies. It only reads, and may run while workers run. Only the
check of the outbox takes long on a large database, and ` + "`--no-outbox`" + ` skips it. The exit code is 1 if a check finds an error. Warnings do not
change the exit code. ` + "`--json`" + ` prints up to ` + fmt.Sprint(MaxFindings) + ` findings of each check.

Every rule about Perdure's tables is a statement that returns the rows that violate it. This page is generated from the code.

`)
	for _, c := range Checks {
		fmt.Fprintf(&b, "## %s\n\n**Should hold:** %s\n\n**If not (%s):** %s\n\n**What to do:** %s\n\n", c.Name, c.Holds, c.Severity, c.Means, c.Do)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
