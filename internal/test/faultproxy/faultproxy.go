// Package faultproxy is a TCP proxy that fails on purpose: it loses the response to a
// message, loses the message itself, replaces the response to COMMIT, or swallows everything.
package faultproxy

import (
	"bytes"
	"context"
	"net"
	"sync"
)

// Proxy forwards connections between clients and a server.
type Proxy struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu        sync.Mutex
	links     map[*link]bool
	closed    bool
	swallow   bool
	trigger   []byte // nil when not armed
	forward   bool
	terminate bool
	triggered chan struct{}
}

// Start starts a proxy on a free port of 127.0.0.1 for the server at target.
func Start(target string) (*Proxy, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, links: map[*link]bool{}}
	p.serving.Go(p.accept)
	return p, nil
}

// Addr returns the address to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// LoseAnswer passes the next message that contains text to the server. When the server has
// responded, it closes the connection instead of passing on the response. It does so once,
// and then closes the returned channel.
func (p *Proxy) LoseAnswer(text string) <-chan struct{} { return p.arm(text, true) }

// LoseMessage closes the connection instead of passing on the next message that contains
// text. It does so once, and then closes the returned channel.
func (p *Proxy) LoseMessage(text string) <-chan struct{} { return p.arm(text, false) }

// Terminate passes the next message that contains text to a PostgreSQL server. When the server
// has committed, it replaces the response to COMMIT with the error that PostgreSQL sends if
// a session is terminated right after its commit, and closes the connection. It does so once,
// and then closes the returned channel.
func (p *Proxy) Terminate(text string) <-chan struct{} {
	triggered := p.arm(text, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terminate = true
	return triggered
}

func (p *Proxy) arm(text string, forward bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger, p.forward, p.terminate, p.triggered = []byte(text), forward, false, make(chan struct{})
	return p.triggered
}

// Swallow makes the proxy keep connections open and accept new ones without
// passing anything on, in either direction.
func (p *Proxy) Swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = true
}

// Heal ends the effect of Swallow. It closes the existing connections, whose messages are
// lost, and forwards new ones.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = false
	for l := range p.links {
		l.cut()
	}
}

// Close closes the proxy and all connections through it.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.cut()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.serving.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.join(&link{client: client, server: server})
	}
}

func (p *Proxy) join(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		l.cut()
		return
	}
	p.links[l] = true
	p.serving.Go(func() { p.pump(l, l.client, l.server, p.toServer) })
	p.serving.Go(func() { p.pump(l, l.server, l.client, p.toClient) })
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	mute           chan struct{} // closed when the next response is lost; nil: it is not lost
	committing     chan struct{} // closed when the response to COMMIT is replaced; nil: it is not
}

func (l *link) cut() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// verdict is the decision on a message.
type verdict int

const (
	pass verdict = iota
	drop
	cut
)

func (p *Proxy) pump(l *link, from, to net.Conn, judge func(*link, []byte) verdict) {
	defer p.part(l)
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		switch judge(l, buffer[:n]) {
		case cut:
			return
		case pass:
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		case drop:
		}
	}
}

func (p *Proxy) part(l *link) {
	l.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) toServer(l *link, message []byte) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swallow {
		return drop
	}
	if p.trigger == nil || !bytes.Contains(message, p.trigger) {
		return pass
	}
	p.trigger = nil
	switch {
	case p.terminate:
		l.committing = p.triggered
		return pass
	case p.forward:
		l.mute = p.triggered
		return pass
	}
	close(p.triggered)
	return cut
}

// committed is the tag in PostgreSQL's response to COMMIT. A message starts five bytes before
// its tag.
var committed = []byte("COMMIT\x00")

// terminated is the error that PostgreSQL sends when a session is terminated.
var terminated = func() []byte {
	fields := "SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection due to administrator command\x00\x00"
	return append([]byte{'E', 0, 0, 0, byte(len(fields) + 4)}, fields...)
}()

func (p *Proxy) toClient(l *link, message []byte) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.swallow:
		return drop
	case l.committing != nil && bytes.Contains(message, committed):
		before := message[:bytes.Index(message, committed)-5]
		_, _ = l.client.Write(append(bytes.Clone(before), terminated...)) // a client that is gone needs no response
		close(l.committing)
		l.committing = nil
		return cut
	case l.mute != nil:
		close(l.mute)
		l.mute = nil
		return cut
	}
	return pass
}
