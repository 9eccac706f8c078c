package endpoint

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"giantstream/config"
)

// Gate passes on requests that may read what a server knows: those that bear a token, or, if none is configured, those
// that call the server by a name of its own. A page of another site that a browser shows can have its own name lead to
// the server's address (DNS rebinding) and then read the answers; but it cannot have the browser call the server by
// another name than its own. An IP address as the host is no such name, so probes and scrapers that find pods by
// address pass.
type Gate struct {
	// Refused, if not nil, is called for each request that bore a token, or should have, and was refused: with the
	// name of the token, "" if it is unknown or has none, and the status.
	Refused func(name string, status int)

	http    config.HTTP
	bearers []*bearer
	now     func() time.Time
}

// NewGate returns the gate of a server. now is the clock by which rates are kept, nil for the system's.
func NewGate(h config.HTTP, now func() time.Time) *Gate {
	if now == nil {
		now = time.Now
	}
	g := &Gate{http: h, now: now}
	for _, b := range h.Bearers() {
		one := &bearer{Bearer: b, hash: sha256.Sum256([]byte(b.Token))}
		if b.Concurrent > 0 {
			one.places = make(chan struct{}, b.Concurrent)
		}
		g.bearers = append(g.bearers, one)
	}
	return g
}

// Refusal answers a request that is refused.
type Refusal func(w http.ResponseWriter, message string, status int)

// Protect passes on what may have a scope.
func (g *Gate) Protect(scope string, refuse Refusal, next http.Handler) http.Handler {
	if len(g.bearers) == 0 {
		return checkHost(g.http, refuse, next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := g.bearerOf(r)
		status, message, wait := http.StatusUnauthorized, "this asks for a token, of http.token or http.tokens",
			time.Duration(0)
		if b != nil {
			status, message, wait = b.enter(scope, g.now())
		}
		if status != http.StatusOK {
			switch status {
			case http.StatusUnauthorized:
				w.Header().Set("WWW-Authenticate", "Bearer")
			case http.StatusTooManyRequests:
				w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			}
			refuse(w, message, status)
			if g.Refused != nil {
				g.Refused(NameOf(b.attachTo(r.Context())), status)
			}
			return
		}
		defer b.leave()
		next.ServeHTTP(w, r.WithContext(b.attachTo(r.Context())))
	})
}

// bearerOf returns whose token a request bears, nil for nobody's. It takes the same time wherever tokens differ,
// for any length, and for every bearer.
func (g *Gate) bearerOf(r *http.Request) (found *bearer) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	have := sha256.Sum256([]byte(given))
	for _, b := range g.bearers {
		if subtle.ConstantTimeCompare(have[:], b.hash[:]) == 1 && ok {
			found = b
		}
	}
	return found
}

// bearer is a client with a token, and what it does now.
type bearer struct {
	config.Bearer
	hash   [sha256.Size]byte
	places chan struct{} // has one for each request at once, nil for any number

	mu sync.Mutex
	// paid is until when the requests so far take up the rate.
	paid time.Time
}

// enter begins a request, which leave ends if the status is 200.
func (b *bearer) enter(scope string, now time.Time) (status int, message string, wait time.Duration) {
	if err := b.may(scope); err != nil {
		return http.StatusForbidden, err.Error(), 0
	}
	if wait = b.pay(now); wait > 0 {
		return http.StatusTooManyRequests,
			fmt.Sprintf("token %q asks more than %v times a second", b.Name, b.Rate), wait
	}
	if b.places != nil {
		select {
		case b.places <- struct{}{}:
		default:
			return http.StatusTooManyRequests,
				fmt.Sprintf("token %q asks more than %d times at once", b.Name, b.Concurrent), time.Second
		}
	}
	return http.StatusOK, "", 0
}

func (b *bearer) leave() {
	if b.places != nil {
		<-b.places
	}
}

// pay takes a request out of the rate, or returns when there will be room for it. What a second holds, at least one
// request, may come at once: the generic cell rate algorithm, whose state is one time.
func (b *bearer) pay(now time.Time) (wait time.Duration) {
	if b.Rate == 0 {
		return 0
	}
	each := time.Duration(float64(time.Second) / b.Rate)
	b.mu.Lock()
	defer b.mu.Unlock()
	paid := b.paid
	if paid.Before(now) {
		paid = now
	}
	if wait = paid.Add(each).Sub(now) - max(each, time.Second); wait > 0 {
		return wait
	}
	b.paid = paid.Add(each)
	return 0
}

func (b *bearer) may(scope string) error {
	if slices.Contains(b.Scopes, scope) {
		return nil
	}
	return fmt.Errorf("token %q lacks the scope %s", b.Name, scope)
}

type bearerKey struct{}

// attachTo returns a context of a request of a client, which may be nil.
func (b *bearer) attachTo(ctx context.Context) context.Context {
	return context.WithValue(ctx, bearerKey{}, b)
}

// NameOf returns the name of the token that a request bears, "" for none.
func NameOf(ctx context.Context) string {
	if b, _ := ctx.Value(bearerKey{}).(*bearer); b != nil {
		return b.Name
	}
	return ""
}

// May returns why a request that was passed on lacks a scope.
func May(ctx context.Context, scope string) error {
	if b, _ := ctx.Value(bearerKey{}).(*bearer); b != nil {
		return b.may(scope)
	}
	return nil // no tokens are asked for
}

// checkHost passes on requests whose Host is an IP address, localhost, or a name that the configuration has.
func checkHost(h config.HTTP, refuse Refusal, next http.Handler) http.Handler {
	names := []string{"", "localhost", hostOf(h.Listen)} // no browser leaves the host out
	for _, name := range h.Hosts {
		names = append(names, hostOf(name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if _, err := netip.ParseAddr(host); err != nil && !slices.Contains(names, host) {
			refuse(w, "the request calls this server by a name that it does not know: use its IP address, "+
				"list the name in http.hosts, or set http.token", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of an address with or without a port, as names are compared.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// FromThisMachine passes on requests that come from the machine that the server runs on.
func FromThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
			http.Error(w, "without http.token, this is for requests from this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
