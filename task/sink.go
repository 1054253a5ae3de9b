package task

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Files returns a sender for development and tests. It does not send messages but
// writes each to a file in the directory. Sending the same message again writes the
// same file.
func Files(dir string) Sender {
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		info := FromContext(ctx)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create directory of sink: %w", err)
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%s.json", info.Type, info.Key))
		if err := writeFile(name, payload); err != nil {
			return nil, fmt.Errorf("write to sink: %w", err)
		}
		return map[string]string{"file": name}, nil
	}
}

// writeFile writes a file atomically.
func writeFile(name string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), ".sink-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(content, '\n'))
	if closing := temporary.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
