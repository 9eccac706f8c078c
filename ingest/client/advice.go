package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
)

// unread says that brokers do not tell what topics they have, and what to look at.
func (c *Client) unread(err error) error {
	return c.advise(fmt.Errorf("kafka: reading metadata from %s: %w", strings.Join(c.brokers, ", "), cause(err)))
}

// cause returns the error without the name of kafka-go's method, which says nothing to users.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "kafka.(*Client).") {
		return inner
	}
	return err
}

// advise says behind an error what to look at, if brokers have refused the connection.
func (c *Client) advise(err error) error {
	if advice := c.adviceOn(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// adviceOn says what to look at after brokers have refused a connection, "" if the error says it.
func (c *Client) adviceOn(err error) string {
	switch {
	case isEither(err, kafka.SASLAuthenticationFailed, kerr.SaslAuthenticationFailed):
		return "check kafka.sasl.username, password and mechanism"
	case isEither(err, kafka.UnsupportedSASLMechanism, kerr.UnsupportedSaslMechanism):
		return "choose another kafka.sasl.mechanism"
	case isEither(err, kafka.IllegalSASLState, kerr.IllegalSaslState):
		return "this listener wants no password: leave kafka.sasl.mechanism empty, or name another port"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "kafka.tls.ca_file must hold the authority that signed the brokers' certificates"
	case strings.Contains(err.Error(), "remote error: tls") && !c.certified:
		return "the brokers may want a client certificate: see kafka.tls.cert_file and key_file"
	case strings.Contains(err.Error(), "remote error: tls"):
		return "the brokers refuse kafka.tls.cert_file: it must be signed by an authority that they trust, and be valid"
	case isEither(err, io.EOF, io.ErrUnexpectedEOF) && c.encrypted && !c.passworded:
		return "the port may be one without TLS, or want a password: set kafka.tls.enabled: false, see kafka.sasl, " +
			"or name another port"
	case isEither(err, io.EOF, io.ErrUnexpectedEOF) && c.encrypted, errors.As(err, new(tls.RecordHeaderError)):
		return "the port may be one without TLS: set kafka.tls.enabled: false, or name another port"
	case isEither(err, io.EOF, io.ErrUnexpectedEOF):
		return "the port may be one that wants TLS or a password: see kafka.tls and kafka.sasl"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "nothing answered in time: check kafka.brokers, the network and the brokers"
	}
	return ""
}

func isEither(err, one, other error) bool { return errors.Is(err, one) || errors.Is(err, other) }
