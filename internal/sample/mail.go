package sample

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/task"
)

var errProvider = errors.New("provider responded 502: retry later")

// flaky returns a sender that often fails before it sends.
func (s *Shop) flaky(failing float64, send task.Sender) task.Sender {
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		if err := s.pause(ctx, s.between(50*time.Millisecond, 400*time.Millisecond)); err != nil {
			return nil, err
		}
		if s.chance(failing) {
			return nil, errProvider
		}
		return send(ctx, payload)
	}
}

// Message is an email or an SMS that was sent.
type Message struct {
	Kind    string          `json:"kind"`
	Sent    time.Time       `json:"sent_at"`
	Message json.RawMessage `json:"message"`
}

const (
	// maxShown is the maximum number of messages that are read.
	maxShown = 200
	// maxKept is the number of files that are kept.
	maxKept = 1000
)

// Mailbox has the sent messages: files in a directory, see task.Files.
type Mailbox struct{ dir string }

// List returns the newest messages of a kind, email or sms, newest first.
func (m *Mailbox) List(kind string) ([]Message, error) {
	files, err := m.files(kind)
	if err != nil {
		return nil, err
	}
	messages := []Message{}
	for _, f := range files[:min(len(files), maxShown)] {
		content, err := os.ReadFile(filepath.Join(m.dir, f.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // tidy removed it concurrently
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, Message{Kind: kind, Sent: f.ModTime().UTC(), Message: content})
	}
	return messages, nil
}

// Count returns the number of messages of a kind.
func (m *Mailbox) Count(kind string) int {
	files, _ := m.files(kind) // only for display: none on error
	return len(files)
}

// files returns the files of a kind, newest first.
func (m *Mailbox) files(kind string) ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), kind+"-") {
			continue
		}
		if info, err := e.Info(); err == nil {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(b.Name(), a.Name()))
	})
	return files, err
}

// tidy removes the oldest messages.
func (m *Mailbox) tidy() {
	for _, kind := range []string{"email", "sms"} {
		files, _ := m.files(kind) // the next call retries
		for _, f := range files[min(len(files), maxKept):] {
			_ = os.Remove(filepath.Join(m.dir, f.Name()))
		}
	}
}
