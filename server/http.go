package server

import (
	"log/slog"
	"net/http"
	"time"
)

// The time limits of connections. A client that sends or reads too slowly loses
// its connection; streams set their own limit for each write.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeGrace        = 30 * time.Second // to read an answer, after it was made
	idleTimeout       = 2 * time.Minute
	maxHeader         = 64 << 10
)

// HTTP returns an http.Server for the handler with limits on the time and the
// memory that a connection may take. A server that is open to others needs them.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: s.options.RequestTimeout + writeGrace,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
}
