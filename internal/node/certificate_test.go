package node_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/node"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// certify writes a certificate with a number, and its key.
func certify(t *testing.T, dir string, number int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	enginetest.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	enginetest.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	enginetest.NoError(t, err)
	enginetest.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	enginetest.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// shown returns the number of the certificate that a server shows.
func shown(t *testing.T, url string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true}) // which is looked at
	enginetest.NoError(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestACertificateIsReplacedWithoutAPause(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := node.Options{Listen: "127.0.0.1:0", TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem")}
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	if _, err := node.New(t.Context(), eng, options); err == nil || !strings.Contains(err.Error(), "read certificate") {
		t.Fatalf("without a certificate: %v", err)
	}
	certify(t, dir, 1)
	n, err := node.New(t.Context(), eng, options)
	enginetest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	if got := shown(t, n.URL()); got != 1 {
		t.Errorf("it shows certificate %d", got)
	}
	certify(t, dir, 2)
	enginetest.NoError(t, n.Reload())
	if got := shown(t, n.URL()); got != 2 {
		t.Errorf("after the change it shows certificate %d", got)
	}
	enginetest.NoError(t, os.WriteFile(options.TLSCert, []byte("nonsense"), 0o600))
	if err := n.Reload(); err == nil {
		t.Error("nonsense was read as a certificate")
	}
	if got := shown(t, n.URL()); got != 2 {
		t.Errorf("after a change that cannot be read it shows certificate %d", got)
	}
	cancel()
	enginetest.NoError(t, <-ended)
}
