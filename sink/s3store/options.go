package s3store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Options say how to reach the bucket. The zero value means AWS with the credentials of the
// environment.
type Options struct {
	// Endpoint is host[:port] of the server, with or without http:// or https://; "" means AWS.
	Endpoint string
	// Region of the bucket. If "", AWS_REGION or AWS_DEFAULT_REGION; if these are not set either,
	// the server is asked.
	Region string
	// PathStyle addresses the bucket as host/bucket instead of bucket.host. Most servers other than
	// AWS need it.
	PathStyle bool
	// Insecure uses http:// with an Endpoint that names no scheme.
	Insecure bool
	// AccessKey and SecretKey, if set, are used instead of the chain: AWS_ACCESS_KEY_ID…, the
	// shared profile (AWS_PROFILE), then the role of the machine, container or service account.
	AccessKey string
	SecretKey string
	// CAFile is a PEM file of certificate authorities to trust besides the system's.
	CAFile string
}

// String leaves the keys out, so that Options can be logged.
func (o Options) String() string {
	keys := "chain"
	if o.AccessKey != "" {
		keys = "given"
	}
	return fmt.Sprintf("endpoint=%q region=%q path_style=%t insecure=%t ca_file=%q credentials=%s",
		o.Endpoint, o.Region, o.PathStyle, o.Insecure, o.CAFile, keys)
}

// GoString keeps the keys out of %#v too.
func (o Options) GoString() string { return "s3store.Options{" + o.String() + "}" }

func (o Options) client() (*minio.Client, error) {
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return nil, errors.New("access key and secret key must be given together")
	}
	endpoint, secure, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	transport, err := o.transport(secure)
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	return minio.New(endpoint, &minio.Options{
		Creds:        o.credentials(),
		Secure:       secure,
		Transport:    pages{transport},
		Region:       o.region(),
		BucketLookup: lookup,
	})
}

func (o Options) endpoint() (host string, secure bool, err error) {
	switch scheme, rest, found := strings.Cut(o.Endpoint, "://"); {
	case o.Endpoint == "":
		return "s3.amazonaws.com", true, nil
	case !found:
		return o.Endpoint, !o.Insecure, nil
	case scheme == "http", scheme == "https":
		return strings.TrimSuffix(rest, "/"), scheme == "https", nil
	default:
		return "", false, fmt.Errorf("endpoint %q: the scheme must be http or https", o.Endpoint)
	}
}

func (o Options) region() string {
	for _, r := range []string{o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")} {
		if r != "" {
			return r
		}
	}
	return ""
}

func (o Options) credentials() *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{},
	})
}

func (o Options) transport(secure bool) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil || o.CAFile == "" {
		return t, err
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s holds no PEM certificate", o.CAFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}
