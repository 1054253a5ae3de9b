package doctor

import (
	"fmt"
	"strings"
)

// Reference returns the checks as a page of documentation.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# perdure doctor

` + "`perdure doctor`" + ` looks whether everything in a database is as it must be. It only reads, and may run beside everything else; only the
check of the outbox takes long on a large one, and ` + "`--no-outbox`" + ` leaves it out. It exits with 1 if something is broken; warnings do not
change the exit code. ` + "`--json`" + ` has all findings, of each check the first ` + fmt.Sprint(MaxFindings) + `.

Every rule about Perdure's tables is a statement that returns what breaks it. This page is made from the code.

`)
	for _, c := range Checks {
		fmt.Fprintf(&b, "## %s\n\n**Should hold:** %s\n\n**If not (%s):** %s\n\n**What to do:** %s\n\n", c.Name, c.Holds, c.Severity, c.Means, c.Do)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
