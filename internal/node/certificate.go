package node

import (
	"crypto/tls"
	"fmt"
)

// Reload rereads the certificate and its key, for new connections. After an error the
// previous ones remain in use.
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

// tls returns the TLS configuration, with the certificate that was read last.
func (n *Node) tls() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return n.certificate.Load(), nil },
	}
}
