package statechart

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// Limits of an expression, in addition to the limits on computed bytes and loop time; see
// bounded.go.
const (
	maxExpression  = 4096
	maxNodes       = 500
	maxPredicates  = 2
	memoryBudget   = 100_000
	maxJoined      = 1 << 20
	maxInComputing = 1 << 20
)

// builtins are the functions of expr that return equal results for equal arguments and cannot
// multiply the size of their arguments.
var builtins = []string{
	"all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count", "sum",
	"len", "type", "abs", "ceil", "floor", "round", "int", "float", "string", "trim", "trimPrefix", "trimSuffix",
	"upper", "lower", "split", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "max", "min", "mean", "median",
	"first", "last", "get", "take", "reverse", "concat", "sort", "sortBy", "toBase64", "fromBase64",
}

// An expression is a template that is computed by an expr program.
type expression struct {
	program *vm.Program
	roots   []string
}

func (p *parser) exprTemplate(place, text string, roots []string) template {
	e, err := compileExpression(text, roots)
	if err != nil {
		p.fail(place, "is not an expression: %v", firstLine(err))
		return literal{}
	}
	return e
}

func compileExpression(text string, roots []string, more ...expr.Option) (*expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("it is longer than %d bytes", maxExpression)
	}
	env := map[string]any{}
	for _, r := range roots {
		env[r] = map[string]any{}
	}
	bounds := &boundsVisitor{}
	options := append([]expr.Option{expr.Env(boundedEnv(env)), expr.MaxNodes(maxNodes), expr.Patch(bounds)}, functions()...)
	program, err := expr.Compile(text, append(options, more...)...)
	if err == nil {
		err = bounds.err()
	}
	return &expression{program: program, roots: roots}, err
}

func functions() []expr.Option {
	all := []expr.Option{expr.DisableAllBuiltins()}
	for _, name := range builtins {
		all = append(all, expr.EnableBuiltin(name))
	}
	return append(all,
		expr.Function("uniq", uniqFunction, new(func(any) []any)),
		expr.Function("keys", keysFunction, new(func(map[string]any) []any)),
		expr.Function("join", joinFunction, new(func([]any, string) string), new(func([]any) string)))
}

func (e *expression) eval(s *scope) (any, error) {
	v, err := e.run(s)
	if err != nil {
		return nil, err
	}
	c := canonicalizer{left: maxInComputing}
	v, _, err = c.value(v, 0)
	return v, err
}

func (e *expression) run(s *scope) (any, error) {
	if s.env == nil {
		s.env = make(map[string]any, len(e.roots)+3)
		s.bind(s.env)
		s.machine.MemoryBudget = memoryBudget
	}
	if err := s.tree.poll(); err != nil {
		return nil, err
	}
	s.bytes = s.tree.expressionBytes()
	for _, r := range e.roots {
		switch r {
		case "context":
			s.env[r] = s.context
		case "event":
			s.env[r] = s.event.asObject()
		default:
			s.env[r] = s.input
		}
	}
	v, err := s.machine.Run(e.program, s.env)
	if err != nil {
		return nil, errors.New(firstLine(err))
	}
	return v, nil
}

// boundsVisitor counts constructs that could make the cost of an expression grow beyond its
// length.
type boundsVisitor struct {
	predicates, variables int
	unknown               string
}

func (b *boundsVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		b.predicates++
	case *ast.VariableDeclaratorNode:
		b.variables++
	case *ast.BuiltinNode: // loops are built in even if they are disabled
		if !slices.Contains(builtins, n.Name) {
			b.unknown = n.Name
		}
	}
	bound(node)
}

func (b *boundsVisitor) err() error {
	switch {
	case b.unknown != "":
		return fmt.Errorf("unknown name %s", b.unknown)
	case b.variables > 0:
		return errors.New("it declares a variable")
	case b.predicates > maxPredicates:
		return fmt.Errorf("it has more than %d loops", maxPredicates)
	default:
		return nil
	}
}

// keysFunction returns the keys of an object in sorted order; expr's own function returns them
// unordered.
func keysFunction(args ...any) (any, error) {
	m, ok := args[0].(map[string]any)
	if !ok {
		return nil, errors.New("keys of what is not an object")
	}
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	out := make([]any, len(names))
	for i, k := range names {
		out[i] = k
	}
	return out, nil
}

// joinFunction joins texts up to a size limit; expr's own function has no limit and can
// multiply the size.
func joinFunction(args ...any) (any, error) {
	parts, ok := args[0].([]any)
	if !ok {
		return nil, errors.New("join of what is not a list")
	}
	sep := ""
	if len(args) > 1 {
		sep, _ = args[1].(string)
	}
	var b strings.Builder
	for i, p := range parts {
		text, ok := p.(string)
		if !ok {
			return nil, errors.New("join of what is not text")
		}
		if b.Len()+len(text)+len(sep) > maxJoined {
			return nil, fmt.Errorf("join gives more than %d bytes", maxJoined)
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// firstLine removes the source excerpt that expr adds to its errors.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
