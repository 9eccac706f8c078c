package endpoint

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/config"
)

const (
	// lookEvery is how often the files of a certificate are read, if anybody asks. They are read whole: of files that a
	// link leads to, as Kubernetes mounts secrets, times need not say that they are others.
	lookEvery = 5 * time.Second
	// maxPEM bounds each of the files, in bytes.
	maxPEM = 1 << 20
)

// certificates has the certificate of two files, and follows them: the files may be replaced at any time, one after the
// other. Until they are a pair again, the former pair is served.
type certificates struct {
	files config.HTTPTLS
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	// tried is of the newest contents that were tried, and failed why they are not served, nil if they are.
	tried  [sha256.Size]byte
	failed error
}

// newCertificates fails unless the files are a pair now.
func newCertificates(files config.HTTPTLS, log *slog.Logger, now func() time.Time) (*certificates, error) {
	c := &certificates{files: files, log: log, now: now}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reload(); c.failed != nil {
		return nil, fmt.Errorf("http.tls: %w", c.failed)
	}
	return c, nil
}

// current returns the pair to serve, and why a newer one is not served.
func (c *certificates) current() (pair *tls.Certificate, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since := c.now().Sub(c.looked); since >= lookEvery || since < 0 {
		c.reload()
	}
	return c.pair, c.failed
}

// reload reads the files.
func (c *certificates) reload() {
	c.looked = c.now()
	certificate, err := readPEM(c.files.CertFile)
	if err != nil {
		c.fail([sha256.Size]byte{}, err)
		return
	}
	key, err := readPEM(c.files.KeyFile)
	if err != nil {
		c.fail([sha256.Size]byte{}, err)
		return
	}
	sum := sha256.Sum256(bytes.Join([][]byte{certificate, key}, []byte{0}))
	if sum == c.tried {
		return
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		c.fail(sum, fmt.Errorf("%s and %s are no pair: %w", c.files.CertFile, c.files.KeyFile, err))
		return
	}
	if c.pair != nil {
		c.log.Info("the certificate of http.tls has changed", "not_after", pair.Leaf.NotAfter)
	}
	c.pair, c.tried, c.failed = &pair, sum, nil
}

// fail keeps the former pair, and says so once for each reason.
func (c *certificates) fail(tried [sha256.Size]byte, err error) {
	if c.pair != nil && (c.failed == nil || c.failed.Error() != err.Error()) {
		c.log.Error("the certificate of http.tls cannot be read; the one of before stays", "error", err,
			"not_after", c.pair.Leaf.NotAfter)
	}
	c.tried, c.failed = tried, err
}

func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err == nil && len(data) > maxPEM {
		err = fmt.Errorf("%s: has more than %d bytes", path, maxPEM)
	}
	return data, err
}

// register makes the metrics of the certificate.
func (c *certificates) register(registry prometheus.Registerer) error {
	for _, g := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_http_certificate_not_after_seconds",
			Help: "When the certificate that is served expires, in seconds since 1970."}, func() float64 {
			pair, _ := c.current()
			return float64(pair.Leaf.NotAfter.Unix())
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_http_certificate_stale",
			Help: "1 if the files of http.tls are no pair now, so that the one of before is served."}, func() float64 {
			if _, failed := c.current(); failed != nil {
				return 1
			}
			return 0
		}),
	} {
		if err := registry.Register(g); err != nil {
			return err
		}
	}
	return nil
}
