package statechart

import (
	"errors"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"
)

// The functions that bounded expressions call in addition to the functions that they name. No
// expression can name these functions, because they are not identifiers.
const (
	addFunction    = "+"    // adds, and counts the bytes of texts
	chargeFunction = "size" // counts the size of a result
	tickFunction   = "tick" // counts an iteration
	hidden         = "\x00"
)

// boundedEnv returns the types of those functions, for the compiler.
func boundedEnv(env map[string]any) map[string]any {
	s := &scope{}
	s.bind(env)
	return env
}

// bind adds the functions to the environment of an expression.
func (s *scope) bind(env map[string]any) {
	env[hidden+addFunction] = s.add
	env[hidden+chargeFunction] = s.charge
	env[hidden+tickFunction] = s.tick
}

// add implements the operator +. It counts a text before it builds the text.
func (s *scope) add(args ...any) any {
	a, isText := args[0].(string)
	b, alsoText := args[1].(string)
	if !isText || !alsoText {
		return runtime.Add(args[0], args[1])
	}
	s.take(len(a) + len(b))
	return a + b
}

// charge counts the size of a function's result.
func (s *scope) charge(args ...any) any {
	switch v := args[0].(type) {
	case string:
		s.take(len(v))
	case []any:
		s.take(len(v) * elementSize)
	case []string:
		s.take(len(v) * elementSize)
	default:
		if l := reflect.ValueOf(v); l.Kind() == reflect.Slice {
			s.take(l.Len() * elementSize)
		}
	}
	return args[0]
}

// elementSize is the memory of an element of a list in bytes.
const elementSize = 16

// tick counts an iteration of a loop.
func (s *scope) tick(args ...any) any {
	if err := s.tree.poll(); err != nil {
		panic(err)
	}
	return args[0]
}

// take counts bytes. If the limit is exceeded, it panics, and the evaluator returns the panic
// as an error.
func (s *scope) take(n int) {
	if s.bytes -= n; s.bytes < 0 {
		panic(s.tree.exceed(LimitExpression, int64(s.tree.expressionBytes()), nil))
	}
}

// expressionBytes returns the maximum number of bytes that an expression may compute.
func (t *Tree) expressionBytes() int { return 2 * t.machine.limits.context }

// allocating are the functions whose result is not a part of their argument.
var allocating = []string{"upper", "lower", "string", "split", "concat", "reverse", "sort", "sortBy", "toBase64", "fromBase64", "map", "filter"}

// bound rewrites an expression so that it counts the size of its results.
func bound(n *ast.Node) {
	switch x := (*n).(type) {
	case *ast.BinaryNode:
		if x.Operator == "+" && mayBeText(x.Left) && mayBeText(x.Right) {
			ast.Patch(n, hiddenCall(addFunction, x.Left, x.Right))
		}
	case *ast.BuiltinNode:
		if slices.Contains(allocating, x.Name) {
			ast.Patch(n, hiddenCall(chargeFunction, x))
		}
	case *ast.PredicateNode:
		x.Node = hiddenCall(tickFunction, x.Node)
	}
}

func hiddenCall(name string, args ...ast.Node) ast.Node {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: hidden + name}, Arguments: args}
}

// mayBeText reports whether a part of an expression can evaluate to a text.
func mayBeText(n ast.Node) bool {
	t := n.Type()
	return t == nil || t.Kind() == reflect.Interface || t.Kind() == reflect.String
}

// uniqFunction returns the first of each group of equal elements. The evaluator's own function
// compares every pair.
func uniqFunction(args ...any) (any, error) {
	list, err := listOf(args[0])
	if err != nil {
		return nil, err
	}
	seen, out := map[string]bool{}, []any{}
	for _, v := range list {
		c, err := Canonical(v)
		if err != nil {
			return nil, err
		}
		key, err := appendJSON(nil, c)
		if err != nil {
			return nil, err
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			out = append(out, v)
		}
	}
	return out, nil
}

func listOf(v any) ([]any, error) {
	if l, ok := v.([]any); ok {
		return l, nil
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return nil, errors.New("uniq of a value that is not a list")
	}
	out := make([]any, r.Len())
	for i := range out {
		out[i] = r.Index(i).Interface()
	}
	return out, nil
}
