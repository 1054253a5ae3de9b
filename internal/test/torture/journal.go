package torture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Journal is the record of a writer that may be killed at any time. It records the intent
// before a unit is written, and the acknowledgement after that. Each line is synced to disk
// before the writer continues. So the journal never claims more than the database has
// promised.
//
// It is text, a line for each event, "intent ID ;". The mark at the end distinguishes a
// whole line from a truncated one.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

const (
	intent  = "intent"
	ack     = "ack"
	refusal = "refusal"
	mark    = ";"
)

// OpenJournal opens the journal at path for appending.
func OpenJournal(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{file: file}
	// A line that a crash truncated must not run into the next one.
	return j, j.write("\n")
}

// Intend records that the unit is about to be written.
func (j *Journal) Intend(unit string) error { return j.line(intent, unit) }

// Acknowledge records that the unit was acknowledged.
func (j *Journal) Acknowledge(unit string) error { return j.line(ack, unit) }

// Refuse records that the unit failed for certain.
func (j *Journal) Refuse(unit string) error { return j.line(refusal, unit) }

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

func (j *Journal) line(event, unit string) error {
	return j.write(event + " " + unit + " " + mark + "\n")
}

func (j *Journal) write(text string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.WriteString(text); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	return nil
}

// ReadJournal returns the outcome of each unit in the journal at path. A unit with only an
// intent is Unknown. A journal that does not exist has no units.
func ReadJournal(path string) (map[string]Outcome, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]Outcome{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer file.Close()
	return readOutcomes(file)
}

func readOutcomes(from io.Reader) (map[string]Outcome, error) {
	known := map[string]Outcome{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] != mark {
			continue // truncated
		}
		switch unit := fields[1]; fields[0] {
		case intent:
			known[unit] = Unknown
		case ack:
			known[unit] = Acknowledged
		case refusal:
			known[unit] = Failed
		}
	}
	return known, lines.Err()
}
