package task

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret is the location of a password or key: an environment variable or a file. It
// never holds the value itself, so that no log and no panic can show it. The value is
// read each time it is needed, so that it can be changed while a worker runs.
type Secret struct{ variable, file string }

// EnvSecret returns a secret in an environment variable, or in the file that the
// variable with the suffix _FILE names.
func EnvSecret(variable string) Secret { return Secret{variable: variable} }

// FileSecret returns a secret in a file. Surrounding white space is ignored.
func FileSecret(path string) Secret { return Secret{file: path} }

// IsZero reports whether the secret was not set.
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns the location of the secret.
func (s Secret) String() string {
	if s.variable != "" {
		return "secret in " + s.variable
	}
	return "secret in " + s.file
}

// Read returns the value.
func (s Secret) Read() (string, error) {
	file := s.file
	if s.variable != "" {
		if value := os.Getenv(s.variable); value != "" {
			return value, nil
		}
		if file = os.Getenv(s.variable + "_FILE"); file == "" {
			return "", fmt.Errorf("%s: %s or %s_FILE is required", s, s.variable, s.variable)
		}
	}
	if file == "" {
		return "", errors.New("secret is required")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	value := strings.TrimSpace(string(content))
	if value == "" {
		return "", fmt.Errorf("%s must not be empty", s)
	}
	return value, nil
}
