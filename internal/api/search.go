package api

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/store"
)

// Hit is a result of a search.
type Hit struct {
	Kind   string `json:"kind" enum:"instance,hook,actor,definition,schedule"`
	ID     string `json:"id"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

var hitKinds = map[string]string{
	store.InstanceKind: "instance", store.HookKind: "hook", store.ActorKind: "actor", "definitions": "definition", store.ScheduleKind: "schedule",
}

type searchInput struct {
	Q string `query:"q" required:"true" minLength:"1" maxLength:"512" doc:"Prefix of an id, or a part of a name."`
}

func (a *API) search(ctx context.Context, in *searchInput) (*List[Hit], error) {
	hits, err := a.inspect.Search(ctx, in.Q)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), hits, "", func(h store.Hit) Hit {
		return Hit{Kind: hitKinds[h.Kind], ID: h.ID, Title: h.Name, Detail: h.Detail}
	}), nil
}

type facetsInput struct {
	Kind string `path:"kind" maxLength:"32" doc:"Kind: instances, hooks, tasks, alarms or actors."`
}

// getFacets returns values that lists can be narrowed to, for completion.
func (a *API) getFacets(ctx context.Context, in *facetsInput) (*One[map[string][]string], error) {
	found, err := a.inspect.Facets(ctx, in.Kind)
	if err != nil {
		return nil, err
	}
	switch in.Kind {
	case store.InstanceKind:
		machines, err := a.recorded(ctx, false)
		if err != nil {
			return nil, err
		}
		for _, m := range machines {
			found["step"] = append(found["step"], m.Steps...)
		}
		found["step"] = firstFacets(found["step"])
	case store.ActorKind:
		for _, t := range found["type"] {
			if m, _, err := a.config.Actors.Machine(ctx, t); err == nil { // another process may have it
				found["state"] = append(found["state"], m.States()...)
			}
		}
		found["state"] = firstFacets(found["state"])
	case store.AlarmKind:
		found["kind"] = []string{"alarm", "timer"}
	}
	return one(found), nil
}

// maxFacets is the maximum number of values that are listed for a field.
const maxFacets = 200

// firstFacets returns the first maxFacets values, sorted and without duplicates.
func firstFacets(values []string) []string {
	slices.Sort(values)
	values = slices.Compact(values)
	return values[:min(maxFacets, len(values))]
}
