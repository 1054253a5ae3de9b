package api

import (
	"net/url"
	"strings"

	"github.com/perdure/perdure/internal/store"
)

func showUpcoming(u store.Upcoming) Upcoming {
	shown := Upcoming{Kind: singular[u.Kind], ID: u.ID, Name: u.Name, Why: u.Why, DueAt: Time(u.At), Link: Link{Kind: singular[u.Kind], ID: u.ID}}
	switch {
	case u.Timer:
		shown.ofTimer()
	case u.Kind == store.AlarmKind:
		shown.actions("/v1/alarms/"+url.PathEscape(u.ID), "move", "skip", "fire")
	case u.Kind == store.ScheduleKind:
		shown.actions("/v1/schedules/"+url.PathEscape(u.ID), "fire")
	}
	return shown
}

// ofTimer marks the item as a timer of an actor.
func (u *Upcoming) ofTimer() {
	actorType, rest, _ := strings.Cut(u.ID, "/")
	actor, key, _ := strings.Cut(rest, "/")
	u.Kind, u.Why = "timer", "timer of an actor"
	u.Link = Link{Kind: "actor", ID: actorType + "/" + actor}
	u.actions("/v1/actors/"+url.PathEscape(actorType)+"/"+url.PathEscape(actor)+"/timers/"+url.PathEscape(key), "move", "skip", "fire")
}

// actions sets the routes below a path that change the due time of the item.
func (u *Upcoming) actions(path string, names ...string) {
	u.Actions = map[string]string{}
	for _, name := range names {
		u.Actions[name] = path + "/" + name
	}
}
