package endpoint

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/config"
	"giantstream/internal/freeport"
)

// pair is a certificate for 127.0.0.1 and its key, as files have them.
type pair struct{ certificate, key []byte }

func newPair(t *testing.T, serial int64) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "giantstream"},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The files may be replaced in any order and be half-written: at any time a whole pair is served, the newest that there
// was, and a reason stands where it is not that of the files. Files are not read more often than they should.
func TestCertificatesFollowTheirFiles(t *testing.T) {
	dir := t.TempDir()
	files := config.HTTPTLS{CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")}
	one, two, three := newPair(t, 1), newPair(t, 2), newPair(t, 3)
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	clock := &clock{time.Unix(1e9, 0)}
	writeFile(t, files.CertFile, one.certificate)
	writeFile(t, files.KeyFile, two.key)
	if _, err := newCertificates(files, log, clock.now); err == nil || !strings.Contains(err.Error(), "are no pair") {
		t.Fatalf("at the start: %v", err)
	}
	writeFile(t, files.KeyFile, one.key)
	c, err := newCertificates(files, log, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	serves := func(when string, serial int64, stale bool) {
		t.Helper()
		got, failed := c.current()
		if got.Leaf.SerialNumber.Int64() != serial || (failed != nil) != stale {
			t.Errorf("%s: serves %v, %v; want %d, stale: %v", when, got.Leaf.SerialNumber, failed, serial, stale)
		}
	}
	serves("at first", 1, false)
	writeFile(t, files.CertFile, two.certificate)
	writeFile(t, files.KeyFile, two.key)
	serves("at once", 1, false)
	clock.Time = clock.Add(lookEvery)
	serves("after a while", 2, false)
	for _, step := range []struct {
		when   string
		write  func()
		serial int64
		stale  bool
	}{
		{"with the certificate alone", func() { writeFile(t, files.CertFile, three.certificate) }, 2, true},
		{"with half a key", func() { writeFile(t, files.KeyFile, three.key[:len(three.key)/2]) }, 2, true},
		{"with the key", func() { writeFile(t, files.KeyFile, three.key) }, 3, false},
		{"without a key", func() { _ = os.Remove(files.KeyFile) }, 3, true},
		{"still without", func() {}, 3, true},
		{"with the key again", func() { writeFile(t, files.KeyFile, three.key) }, 3, false},
		{"with a file too large", func() { writeFile(t, files.CertFile, make([]byte, maxPEM+1)) }, 3, true},
		{"with an empty file", func() { writeFile(t, files.CertFile, nil) }, 3, true},
		{"with an older pair", func() {
			writeFile(t, files.CertFile, one.certificate)
			writeFile(t, files.KeyFile, one.key)
		}, 1, false},
	} {
		step.write()
		clock.Time = clock.Add(lookEvery)
		serves(step.when, step.serial, step.stale)
	}
	if n := strings.Count(logged.String(), "the one of before stays"); n != 5 {
		t.Errorf("%d failures are logged, want 5:\n%s", n, logged.String())
	}
	if key := strings.Split(string(three.key), "\n")[1]; strings.Contains(logged.String(), key) {
		t.Error("a key is in the log")
	}
}

// A server with a certificate speaks HTTPS, over HTTP/2 too, and nothing else; its metrics say when it expires.
func TestServeSpeaksTLS(t *testing.T) {
	dir := t.TempDir()
	p := newPair(t, 1)
	files := config.HTTPTLS{CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")}
	writeFile(t, files.CertFile, p.certificate)
	writeFile(t, files.KeyFile, p.key)
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served, registry := make(chan error), prometheus.NewRegistry()
	go func() {
		served <- Serve(ctx, config.HTTP{Listen: addr, TLS: files}, registry, slog.New(slog.DiscardHandler),
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	}()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true}}
	get := func(url string) (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer w.Body.Close()
		body, err := io.ReadAll(w.Body)
		return string(body), err
	}
	for {
		if body, err := get("https://" + addr); err == nil {
			if body != "HTTP/2.0" {
				t.Errorf("over %s", body)
			}
			break
		}
		select {
		case err := <-served:
			t.Fatal(err)
		default:
		}
	}
	if body, err := get("http://" + addr); err == nil && strings.HasPrefix(body, "HTTP/") {
		t.Errorf("without TLS: %s", body)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 2 {
		t.Errorf("metrics %v, %v", families, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
