package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

// dialer connects to brokers: TCP, then TLS, then the login. kafka-go could do all three, but does not keep how long a
// session lasts.
type dialer struct {
	tcp       net.Dialer
	tls       *tls.Config    // nil for none
	mechanism sasl.Mechanism // nil for none
	clientID  string
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := d.tcp.DialContext
	if d.tls != nil {
		dial = (&tls.Dialer{NetDialer: &d.tcp, Config: d.tls}).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil || d.mechanism == nil {
		return conn, err
	}
	s := &session{Conn: conn, mechanism: d.mechanism, raw: protocol.NewConn(conn, d.clientID)}
	if err := s.open(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// session is a connection on which a user is logged in. Brokers may bound how long (connections.max.reauth.ms), and
// close a connection that sends a request later than that. So it logs in again before the first request after most of
// that time, as KIP-368 has it. It is used by one goroutine at a time.
type session struct {
	net.Conn
	mechanism sasl.Mechanism
	raw       *protocol.Conn // Conn, for the requests of the login

	// answered: the next write begins a request, since kafka-go sends one only after the answer to the one before.
	answered bool
	renew    time.Time // zero for never
}

// renewAfter is how much of a session passes before the next login: the rest is for the way there.
const renewAfter = 0.85

func (s *session) Read(b []byte) (int, error) {
	s.answered = true
	return s.Conn.Read(b)
}

func (s *session) Write(b []byte) (int, error) {
	if s.answered && !s.renew.IsZero() && time.Now().After(s.renew) {
		if err := s.login(context.Background()); err != nil { // kafka-go has set the request's deadline
			return 0, err
		}
	}
	s.answered = false
	return s.Conn.Write(b)
}

// open logs in on a new connection.
func (s *session) open(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := s.SetDeadline(deadline); err != nil {
			return err
		}
	}
	answer, err := s.raw.RoundTrip(&apiversions.Request{})
	if err != nil {
		return err
	}
	res := answer.(*apiversions.Response)
	if res.ErrorCode != 0 {
		return fmt.Errorf("negotiating versions: %w", kafka.Error(res.ErrorCode))
	}
	versions := map[protocol.ApiKey]int16{}
	for _, k := range res.ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		versions[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
	}
	s.raw.SetVersions(versions)
	if err := s.login(ctx); err != nil {
		return err
	}
	return s.SetDeadline(time.Time{})
}

func (s *session) login(ctx context.Context) error {
	began := time.Now()
	res, err := s.raw.RoundTrip(&saslhandshake.Request{Mechanism: s.mechanism.Name()})
	if err != nil {
		return err
	}
	if code := res.(*saslhandshake.Response).ErrorCode; code != 0 {
		return kafka.Error(code)
	}
	exchange, say, err := s.mechanism.Start(ctx)
	var lifetime time.Duration
	for done := false; err == nil && !done; {
		res, err = s.raw.RoundTrip(&saslauthenticate.Request{AuthBytes: say})
		if errors.Is(err, io.EOF) { // a broker may refuse without a word
			return kafka.SASLAuthenticationFailed
		}
		if err != nil {
			return err
		}
		answer := res.(*saslauthenticate.Response)
		if answer.ErrorCode != 0 {
			return fmt.Errorf("%w: %s", kafka.Error(answer.ErrorCode), answer.ErrorMessage)
		}
		lifetime = time.Duration(min(answer.SessionLifetimeMs, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
		done, say, err = exchange.Next(ctx, answer.AuthBytes)
	}
	if s.renew = (time.Time{}); lifetime > 0 {
		s.renew = began.Add(time.Duration(renewAfter * float64(lifetime)))
	}
	return err
}
