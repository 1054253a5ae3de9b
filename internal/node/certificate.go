package node

import (
	"crypto/tls"
	"fmt"
)

// Reload reads the certificate and its key again, for the connections that come
// from now on. After an error those that were read before stay.
func (n *Node) Reload() error {
	if n.options.TLSCert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(n.options.TLSCert, n.options.TLSKey)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	n.certificate.Store(&pair)
	return nil
}

// tls is how connections are encrypted: with the certificate that was read last.
func (n *Node) tls() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return n.certificate.Load(), nil },
	}
}
