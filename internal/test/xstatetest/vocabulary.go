package xstatetest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/perdure/perdure/statechart"
)

// Registry returns the vocabulary of the corpus.
func (c *Case) Registry() *statechart.Registry {
	reg := &statechart.Registry{
		Guards:  Guards(),
		Actions: Actions(),
		Delays:  map[string]statechart.Delay{},
		Actors:  map[string]statechart.Actor{"echo": statechart.Promise{}, "fail": statechart.Promise{}, "manual": statechart.Promise{}},
	}
	for name, raw := range c.Machines {
		reg.Actors[name] = statechart.Chart(raw)
	}
	for name, v := range c.Delays {
		reg.Delays[name] = corpusDelay(v)
	}
	// XState reports a missing guard only when it needs the guard. Perdure requires it to be
	// registered.
	for _, name := range c.unknownGuards() {
		if c.Divergence == "" {
			reg.Guards[name] = func(statechart.Args) (bool, error) {
				return false, fmt.Errorf("Guard '%s' is not implemented.'.", name) //nolint:revive,staticcheck // XState's text
			}
		}
	}
	return reg
}

func corpusDelay(v any) statechart.Delay {
	if ms, ok := v.(float64); ok {
		return statechart.Milliseconds(int64(ms))
	}
	from, _ := v.(map[string]any)["$from"].(string)
	return func(a statechart.Args) (float64, error) {
		ms, ok := statechart.Float(dig(a, from))
		if !ok {
			return 0, errors.New("delay is not a number")
		}
		return ms, nil
	}
}

// dig follows a path from the arguments.
func dig(a statechart.Args, path string) any {
	root, rest, _ := strings.Cut(path, ".")
	if root == "context" {
		return digIn(a.Context, rest)
	}
	return digIn(a.Event.Data, rest)
}

func digIn(v any, path string) any {
	for _, key := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// Guards returns the guards of the corpus.
func Guards() map[string]statechart.Guard {
	return map[string]statechart.Guard{
		"yes":  func(statechart.Args) (bool, error) { return true, nil },
		"no":   func(statechart.Args) (bool, error) { return false, nil },
		"boom": func(statechart.Args) (bool, error) { return false, errors.New("guard boom") },
		"ctxEq": func(a statechart.Args) (bool, error) {
			return strictEqual(digIn(a.Context, a.Params["key"].(string)), a.Params["value"]), nil
		},
		"ctxGte": func(a statechart.Args) (bool, error) {
			return number(digIn(a.Context, a.Params["key"].(string))) >= number(a.Params["value"]), nil
		},
		"ctxLt": func(a statechart.Args) (bool, error) {
			return number(digIn(a.Context, a.Params["key"].(string))) < number(a.Params["value"]), nil
		},
		"ctxTruthy": func(a statechart.Args) (bool, error) {
			v := digIn(a.Context, a.Params["key"].(string))
			return v != nil && v != false && v != "" && !strictEqual(v, int64(0)), nil
		},
		"eventEq": func(a statechart.Args) (bool, error) {
			path := a.Params["path"].(string)
			if path == "type" {
				return a.Event.Type == a.Params["value"], nil
			}
			return strictEqual(digIn(a.Event.Data, path), a.Params["value"]), nil
		},
		"cmp": compare,
	}
}

func compare(a statechart.Args) (bool, error) {
	left, right := a.Params["left"], a.Params["right"]
	switch a.Params["op"] {
	case "==":
		return strictEqual(left, right), nil
	case "!=":
		return !strictEqual(left, right), nil
	}
	order := scriptCompare(left, right)
	switch a.Params["op"] {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0 && order < 2, nil
	case ">=":
		return order >= 0 && order < 2, nil
	default:
		return false, fmt.Errorf("unknown operator %v", a.Params["op"])
	}
}

// scriptCompare orders two strings as strings and all other values as numbers. It returns 2
// if they cannot be ordered.
func scriptCompare(a, b any) int {
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			return strings.Compare(s, t)
		}
	}
	x, y := number(a), number(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	default:
		return 2
	}
}

// strictEqual is JavaScript's ===: objects and arrays are equal only to themselves.
func strictEqual(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) float64 {
	f, _ := statechart.Float(v)
	return f
}

type assignment = func(a statechart.Args) (any, error)

// set returns an action that changes the key that its params name.
func set(fn assignment) statechart.Action {
	return statechart.Assign(func(a statechart.Args) (map[string]any, error) {
		v, err := fn(a)
		return map[string]any{a.Params["key"].(string): v}, err
	})
}

// own returns the value of the key that the params name.
func own(a statechart.Args) any { return a.Context[a.Params["key"].(string)] }

// Actions returns the actions of the corpus.
func Actions() map[string]statechart.Action {
	return map[string]statechart.Action{
		"noop": statechart.Check(func(statechart.Args) error { return nil }),
		"inc": set(func(a statechart.Args) (any, error) {
			by := 1.0
			if v, ok := a.Params["by"]; ok && v != nil {
				by = number(v)
			}
			return number(own(a)) + by, nil
		}),
		"mul": set(func(a statechart.Args) (any, error) { return number(own(a)) * number(a.Params["by"]), nil }),
		"pow": set(func(a statechart.Args) (any, error) { return math.Pow(number(own(a)), number(a.Params["exp"])), nil }),
		"set": set(func(a statechart.Args) (any, error) { return a.Params["value"], nil }),
		"add": set(func(a statechart.Args) (any, error) { return number(a.Params["left"]) + number(a.Params["right"]), nil }),
		"append": set(func(a statechart.Args) (any, error) {
			l, _ := own(a).([]any)
			return append(l[:len(l):len(l)], a.Params["value"]), nil
		}),
		"appendEvent": set(func(a statechart.Args) (any, error) {
			l, _ := own(a).([]any)
			return append(l[:len(l):len(l)], a.Event.Type), nil
		}),
		"effect": statechart.Effect{},
		"throw": statechart.Check(func(a statechart.Args) error {
			if text, ok := a.Params["message"].(string); ok {
				return errors.New(text)
			}
			return errors.New("boom")
		}),
	}
}
