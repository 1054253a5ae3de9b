package cli

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/rotate"
	"github.com/perdure/perdure/internal/seal"
)

// encryptionKeys is the variable with the keys. It has no flag, because other users of the
// host can see flags.
const encryptionKeys = envPrefix + "ENCRYPTION_KEYS"

// ring returns the keys for the encryption of payloads, or nil if there are none.
func (a *app) ring() (*perdure.Keys, error) {
	name, text, err := a.lookup([]string{encryptionKeys})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return perdure.ParseKeys(text)
}

// keyTexts returns the secret parts of keys.
func keyTexts(text string) []string {
	var all []string
	for _, key := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r <= ' ' }) {
		_, secret, _ := strings.Cut(key, ":")
		all = append(all, secret)
	}
	return all
}

func (a *app) keys() *cobra.Command {
	cmd := a.group("key", "Manage the encryption keys of payloads", a.keysGenerate(), a.keysStatus(), a.keysRotate())
	cmd.Long = "Payloads are encrypted at rest if " + encryptionKeys + ", or the file that\n" +
		encryptionKeys + "_FILE names, has keys: one per line, id:base64. The first\n" +
		"key encrypts, all keys decrypt. To replace a key:\n\n" +
		"  1. Add the new key as the second one, and restart all processes.\n" +
		"  2. Move the new key to the first line, and restart all processes.\n" +
		"  3. Run \"perdure key rotate\".\n" +
		"  4. Remove the old key when \"perdure key status\" shows no values to encrypt."
	return cmd
}

func (a *app) keysGenerate() *cobra.Command {
	return &cobra.Command{
		Use: "generate <id>", Short: "Generate an encryption key", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			key, err := seal.Generate(args[0], rand.Reader)
			if err != nil {
				return err
			}
			return a.show(map[string]string{"key": key}, func(w io.Writer) { fmt.Fprintln(w, key) })
		},
	}
}

func (a *app) keysStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Count values that are not encrypted with the first key", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				all, err := rotate.Pending(cmd.Context(), eng, a.rotating)
				a.progress("")
				if err != nil {
					return err
				}
				return a.showRotation(all, "TO ENCRYPT")
			})
		},
	}
}

func (a *app) keysRotate() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Encrypt all values with the first key", Args: cobra.NoArgs,
		Long: "Encrypts every value that is not encrypted with the first key, in batches. Processes can\n" +
			"continue to work. The command can be interrupted and run again. Each batch is in the\n" +
			"audit log, with the ids of the keys. Exits with 1 if the key of a value is missing.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.view(cmd.Context(), func(eng *perdure.Engine) error {
				all, err := rotate.Run(cmd.Context(), eng, a.rotating)
				a.progress("")
				if err != nil {
					return err
				}
				if err := a.showRotation(all, "ENCRYPTED"); err != nil {
					return err
				}
				for _, p := range all {
					if p.Foreign > 0 {
						return errReported
					}
				}
				return nil
			})
		},
	}
}

func (a *app) rotating(p rotate.Progress) {
	a.progress(fmt.Sprintf("%s: %s", p.Column, count(int(p.Seen), "value", "values")))
}

// rotationJSON is the result for one column as JSON.
type rotationJSON struct {
	Column   string `json:"column"`
	Seen     int64  `json:"values"`
	Resealed int64  `json:"encrypted"`
	Foreign  int64  `json:"key_missing"`
}

func (a *app) showRotation(all []rotate.Progress, what string) error {
	data := []rotationJSON{}
	rows := [][]string{{"COLUMN", "VALUES", what, "KEY MISSING"}}
	for _, p := range all {
		data = append(data, rotationJSON(p))
		rows = append(rows, []string{p.Column, thousands(int(p.Seen)), thousands(int(p.Resealed)), thousands(int(p.Foreign))})
	}
	return a.show(map[string]any{"data": data}, func(w io.Writer) { table(w, rows) })
}
