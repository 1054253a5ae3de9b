package server

import (
	"log/slog"
	"net/http"
	"time"
)

// The time limits of connections. The server closes the connection of a client that sends
// or reads too slowly. Streams set their own limit for each write.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeGrace        = 30 * time.Second // for the client to read a response, after RequestTimeout
	idleTimeout       = 2 * time.Minute
	maxHeader         = 64 << 10
)

// HTTP returns an http.Server for the handler with limits on the time and the memory of a
// connection. A server that other hosts can reach needs these limits.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: s.options.RequestTimeout + writeGrace,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
}
