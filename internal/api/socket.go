package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/statechart"
)

// socketProtocol is the protocol of the socket.
const socketProtocol = "perdure.actor.v1"

// sent is a message of the server: a snapshot, a patch, a receipt or an error.
type sent struct {
	Kind string `json:"kind"`
	// ID is the id of the client's message, in a reply.
	ID   string `json:"id,omitempty"`
	Data any    `json:"data"`
}

// received is a message of the client: an event for the actor.
type received struct {
	ID    string          `json:"id"`
	Key   string          `json:"key"`
	Event json.RawMessage `json:"event"`
}

// openSocket is like streamActor over a WebSocket, with events in the other direction. Each
// message of the client is {"id", "key"?, "event"}. The server replies with a receipt or an
// error with the same id.
func (a *API) openSocket(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
	caller, d, err := a.watch(ctx, in)
	if err != nil {
		return nil, err
	}
	req := requestOf(ctx)
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		r, w := humago.Unwrap(hctx)
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{socketProtocol}})
		if err != nil {
			return // Accept has responded
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(a.config.MaxBody)
		route, _ := hctx.Operation().Metadata["route"].(Route)
		ctx, exclude, stop := a.guard(context.WithoutCancel(hctx.Context()), r, route)
		defer stop()
		s := &socket{api: a, conn: conn, req: req, http: r, route: route, exclude: exclude, ref: in.ref(), caller: caller}
		s.run(ctx, d)
	}}, nil
}

// socket is an open WebSocket of an actor.
type socket struct {
	api     *API
	conn    *websocket.Conn
	req     *request
	http    *http.Request
	route   Route
	exclude func(error) // closes the socket
	ref     actor.Ref
	caller  actor.Caller
}

// run reads and writes until either side closes the socket. A cancelled context breaks the
// connection, so guarded is not used for reads and writes: the client receives the reason
// first.
func (s *socket) run(guarded context.Context, d *differ) {
	following, unfollow := context.WithCancel(guarded)
	ctx, cancel := context.WithCancel(context.WithoutCancel(guarded))
	defer unfollow()
	defer cancel()
	var reader sync.WaitGroup
	reader.Go(func() {
		defer unfollow()
		s.read(ctx)
	})
	_ = s.api.follow(following, s.ref, s.caller, d, func(name string, message any, _ int64) error {
		return s.send(ctx, sent{Kind: name, Data: message})
	}, func() error { return s.ping(ctx) })
	_ = s.conn.Close(closeCode(guarded))
	cancel()
	reader.Wait()
}

func (s *socket) read(ctx context.Context) {
	for {
		_, raw, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		if s.send(ctx, s.answer(ctx, raw)) != nil {
			return
		}
	}
}

// answer returns the reply to a message. Its JSON is checked like the JSON of a body.
func (s *socket) answer(ctx context.Context, raw []byte) sent {
	var m received
	if err := s.api.unmarshal(raw, &m); err != nil {
		return sent{Kind: "error", Data: s.api.problem(s.req, &fault.Invalid{Field: "message", Reason: "must be JSON with the keys id, key and event"})}
	}
	return s.handle(ctx, m)
}

// handle sends an event to the actor and returns the reply. The credential is checked for
// every message, because a message writes.
func (s *socket) handle(ctx context.Context, m received) sent {
	ctx, cancel := context.WithTimeout(ctx, s.api.config.Timeout)
	defer cancel()
	event, err := statechart.ParseEvent(m.Event)
	if err == nil {
		err = s.may(ctx)
	}
	var r actor.Receipt
	if err == nil {
		r, err = s.api.config.Actors.Send(s.acting(ctx, m), s.ref, s.caller, event, &actor.SendOptions{Key: m.Key})
	}
	if err != nil {
		return sent{Kind: "error", ID: m.ID, Data: s.api.problem(s.req, err)}
	}
	return sent{Kind: "receipt", ID: m.ID, Data: s.api.redactFor(s.http.Context(), showReceipt(r))}
}

// acting returns the context of an event. The audit log records it like an event over HTTP.
func (s *socket) acting(ctx context.Context, m received) context.Context {
	req := *s.req
	req.via = "socket"
	return s.api.withAct(ctx, &req, "send-event", "actors", []*thing{{id: s.ref.String()}}, eventAsked(m.Event))
}

// may returns the error for a sender who may not write. It closes the socket if the
// credential no longer suffices for it.
func (s *socket) may(ctx context.Context) error {
	p, err := s.api.recheck(ctx, s.http, s.route, true)
	if excluded(err) {
		s.exclude(err)
	}
	if err == nil {
		err = mayOperate(p)
	}
	return err
}

func (s *socket) send(ctx context.Context, m sent) error {
	ctx, cancel := context.WithTimeout(ctx, socketTimeout)
	defer cancel()
	return wsjson.Write(ctx, s.conn, m)
}

func (s *socket) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, socketTimeout)
	defer cancel()
	return s.conn.Ping(ctx)
}
