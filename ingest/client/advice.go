package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
)

// unread says that brokers do not tell what topics they have, and what to look at.
func (c *Client) unread(err error) error {
	return c.advise(fmt.Errorf("kafka: reading metadata from %s: %w", strings.Join(c.brokers, ", "), err))
}

// advise says behind an error what to look at, if brokers have refused the connection.
func (c *Client) advise(err error) error {
	if advice := adviceOn(err, c.encrypted); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// adviceOn says what to look at after brokers have refused a connection, "" if the error says it.
func adviceOn(err error, encrypted bool) string {
	switch {
	case isEither(err, kafka.SASLAuthenticationFailed, kerr.SaslAuthenticationFailed):
		return "check kafka.sasl.username, password and mechanism"
	case isEither(err, kafka.IllegalSASLState, kerr.IllegalSaslState):
		return "this listener wants no password: leave kafka.sasl.mechanism empty, or name another port"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "kafka.tls.ca_file must hold the authority that signed the brokers' certificates"
	case strings.Contains(err.Error(), "remote error: tls"):
		return "the brokers refuse kafka.tls.cert_file: it must be signed by an authority that they trust, and be valid"
	case isEither(err, io.EOF, io.ErrUnexpectedEOF) && encrypted, errors.As(err, new(tls.RecordHeaderError)):
		return "the port may be one without TLS: set kafka.tls.enabled: false, or name another port"
	case isEither(err, io.EOF, io.ErrUnexpectedEOF):
		return "the port may be one that wants TLS or a password: see kafka.tls and kafka.sasl"
	}
	return ""
}

func isEither(err, one, other error) bool { return errors.Is(err, one) || errors.Is(err, other) }
