package statechart

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/edge"
)

// maxDelay is the maximum delay in milliseconds.
const maxDelay = int64(edge.MaxDelay / time.Millisecond)

// A delay is a duration: a number, a name, or computed.
type delay struct {
	name  string // as in the event's name; "" if computed
	fixed int64
	fn    Delay
	value template
}

// eval returns the delay in milliseconds.
func (d *delay) eval(r *run) (int64, error) {
	switch {
	case d.fn != nil:
		ms, err := d.fn.call(r.args(nil))
		if err != nil {
			return 0, err
		}
		return wholeDelay(ms)
	case d.value != nil:
		v, err := d.value.eval(r.scope())
		if err != nil {
			return 0, err
		}
		ms, ok := Float(v)
		if !ok {
			return 0, fmt.Errorf("delay %s is not a number", d.name)
		}
		return wholeDelay(ms)
	default:
		return d.fixed, nil
	}
}

// wholeDelay converts a computed delay to one that can be stored.
func wholeDelay(ms float64) (int64, error) {
	switch {
	case math.IsNaN(ms):
		return 0, errors.New("delay is not a number")
	case ms > float64(maxDelay):
		return 0, errors.New("delay is longer than 100 years")
	case ms < 0:
		return 0, nil
	default:
		return int64(math.Round(ms)), nil
	}
}

// afterKey compiles a key of after: a number or a name.
func (p *parser) afterKey(place, key string) delay {
	if f, err := strconv.ParseFloat(key, 64); err == nil && strings.ContainsRune("0123456789+-.", rune(key[0])) {
		return p.fixedDelay(place, f)
	}
	if d, ok := p.namedDelay(key); ok {
		return d
	}
	p.fail(place, "names the delay %q, which is not registered", key)
	return delay{}
}

// delay compiles a delay of an action.
func (p *parser) delay(place string, v any) delay {
	switch v := v.(type) {
	case int64:
		return p.fixedDelay(place, float64(v))
	case float64:
		return p.fixedDelay(place, v)
	case string:
		d, ok := p.namedDelay(v)
		if !ok {
			p.fail(place, "names the delay %q, which is not registered", v)
		}
		return d
	default:
		t := p.template(place, v, "context", "event")
		if isStatic(t) {
			p.fail(place, "must be a number or a name")
		}
		return delay{value: t}
	}
}

func (p *parser) fixedDelay(place string, ms float64) delay {
	switch {
	case math.IsNaN(ms):
		p.fail(place, "must be a number")
	case ms < 0:
		p.fail(place, "must not be negative")
	case ms > float64(maxDelay):
		p.fail(place, "must be at most 100 years")
	case ms != math.Trunc(ms):
		p.fail(place, "must be a whole number of milliseconds")
	default:
		return delay{name: strconv.FormatInt(int64(ms), 10), fixed: int64(ms)}
	}
	return delay{}
}

func (p *parser) namedDelay(name string) (delay, bool) {
	if d, ok := p.delays[name]; ok {
		return d, true
	}
	fn := p.reg.Delays[name]
	if fn == nil && p.opts.AllowUnknown {
		fn = func(Args) (float64, error) { return 0, fmt.Errorf("delay %q is not registered", name) }
	}
	return delay{name: name, fn: fn}, fn != nil
}

// ownDelays reads the delays that the document itself defines.
func (p *parser) ownDelays(cfg *object) {
	p.delays = map[string]delay{}
	o, ok := p.object(p.place, cfg, "delays")
	if !ok {
		return
	}
	for _, name := range o.keys {
		place := at(at(p.place, "delays"), name)
		if _, isName := o.value(name).(string); isName {
			p.fail(place, "must be a number or an expression")
			continue
		}
		d := p.delay(place, o.value(name))
		d.name = name
		p.delays[name] = d
	}
}
