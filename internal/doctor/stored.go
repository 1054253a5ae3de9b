package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/retry"
)

// keyOf returns the key that a value could not be decrypted with.
func keyOf(err error) string {
	var sealed *seal.SealedError
	if errors.As(err, &sealed) {
		return sealed.Key
	}
	return ""
}

// policies finds recorded retry policies that cannot be decoded.
func (x *examination) policies(ctx context.Context) error {
	var findings []Finding
	list := x.rt.Store.AllPolicies(func(p store.RecordedPolicies) {
		if err := policyFault(p.Retry); err != nil {
			findings = append(findings, Finding{ID: p.Definition.String(), Detail: fmt.Sprintf("since %s: %v", p.Since.UTC().Format("2006-01-02 15:04:05"), err)})
		}
	})
	if err := sqldb.Each(ctx, x.rt.DB, list.Row, list.SQL, list.Args...); err != nil {
		return err
	}
	x.add("fsm_policy", "", findings...)
	return nil
}

// policyFault returns an error if a set of retry policies cannot be used.
func policyFault(text string) error {
	var set struct {
		Retry retry.Policy            `json:"retry"`
		Steps map[string]retry.Policy `json:"steps"`
	}
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return fmt.Errorf("read retry policies: %w", err)
	}
	if err := set.Retry.Validate(); err != nil && !set.Retry.IsZero() {
		return err
	}
	for step, p := range set.Steps {
		if err := p.Validate(); err != nil && !p.IsZero() {
			return fmt.Errorf("step %s: %w", step, err)
		}
	}
	return nil
}

// remotes finds remote definitions that processes cannot load.
func (x *examination) remotes(ctx context.Context) error {
	var findings []Finding
	list := x.rt.Store.RemoteDefinitions(func(d store.RemoteDefinition) {
		for _, err := range []error{specFault(d.Spec), secretFault(d)} {
			if err != nil {
				findings = append(findings, Finding{ID: d.Definition.String(), Detail: err.Error()})
			}
		}
	})
	if err := sqldb.Each(ctx, x.rt.DB, list.Row, list.SQL, list.Args...); err != nil {
		return err
	}
	x.add("remote_definition", "", findings...)
	return nil
}

// specFault returns an error if the steps of a remote definition cannot be called.
func specFault(text string) error {
	var spec struct {
		Retry retry.Policy `json:"retry"`
		Steps []struct {
			Name string `json:"name"`
			URL  string `json:"url"`
		} `json:"steps"`
	}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return fmt.Errorf("read definition: %w", err)
	}
	if len(spec.Steps) == 0 {
		return errors.New("the definition has no steps")
	}
	for _, s := range spec.Steps {
		to, err := url.Parse(s.URL)
		if s.Name == "" || err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
			return fmt.Errorf("step %q has no URL that can be called", s.Name)
		}
	}
	if err := spec.Retry.Validate(); err != nil && !spec.Retry.IsZero() {
		return err
	}
	return nil
}

// secretFault returns an error if the secrets of a remote definition cannot be used. The error
// does not contain them.
func secretFault(d store.RemoteDefinition) error {
	if d.Sealed != nil {
		return d.Sealed
	}
	var secrets []string
	if json.Unmarshal([]byte(d.Secrets), &secrets) != nil {
		return errors.New("the secrets are not a list of texts")
	}
	if len(secrets) < 1 || len(secrets) > 2 {
		return fmt.Errorf("there are %d secrets, want 1 or 2", len(secrets))
	}
	for _, s := range secrets {
		if _, err := webhook.ParseSecret(s); err != nil {
			return errors.New("a secret does not have the form of a secret")
		}
	}
	return nil
}
