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
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

	settings func() *config.HTTP
	now      func() time.Time

	known    atomic.Pointer[bearers]
	changing sync.Mutex
}

// bearers are those of settings.
type bearers struct {
	settings *config.HTTP
	list     []*bearer
}

// NewGate returns the gate of a server. settings returns those in force: another pointer once they have changed. now is
// the clock by which rates are kept, nil for the system's.
func NewGate(settings func() *config.HTTP, now func() time.Time) *Gate {
	if now == nil {
		now = time.Now
	}
	g := &Gate{settings: settings, now: now}
	g.known.Store(&bearers{})
	return g
}

// bearers returns those of the settings in force. One that the former settings have, too, goes on with what it has
// asked so far.
func (g *Gate) bearers() []*bearer {
	settings := g.settings()
	if known := g.known.Load(); known.settings == settings {
		return known.list
	}
	g.changing.Lock()
	defer g.changing.Unlock()
	former := g.known.Load()
	next := &bearers{settings: settings}
	for _, b := range settings.Bearers() {
		same := slices.IndexFunc(former.list, func(f *bearer) bool { return reflect.DeepEqual(f.Bearer, b) })
		if same >= 0 {
			next.list = append(next.list, former.list[same])
		} else {
			next.list = append(next.list, newBearer(b))
		}
	}
	g.known.Store(next)
	return next.list
}

// Refusal answers a request that is refused.
type Refusal func(w http.ResponseWriter, message string, status int)

// Protect passes on what may have a scope. While no tokens are configured, what has the scope admin is for requests
// from the same machine alone.
func (g *Gate) Protect(scope string, refuse Refusal, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := g.bearers()
		if len(known) == 0 {
			if message := g.refusalOf(r, scope); message != "" {
				refuse(w, message, http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		b := bearerOf(r, known)
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
func bearerOf(r *http.Request, known []*bearer) (found *bearer) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	have := sha256.Sum256([]byte(given))
	for _, b := range known {
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

func newBearer(b config.Bearer) *bearer {
	one := &bearer{Bearer: b, hash: sha256.Sum256([]byte(b.Token))}
	if b.Concurrent > 0 {
		one.places = make(chan struct{}, b.Concurrent)
	}
	return one
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

// refusalOf says why a request is refused where no tokens are configured, "" if it is not: its Host must be an IP
// address, localhost, or a name that the configuration has.
func (g *Gate) refusalOf(r *http.Request, scope string) string {
	h, host := g.settings(), hostOf(r.Host)
	_, err := netip.ParseAddr(host)
	known := err == nil || host == "" || host == "localhost" || host == hostOf(h.Listen) || // no browser leaves it out
		slices.ContainsFunc(h.Hosts, func(name string) bool { return hostOf(name) == host })
	if !known {
		return "the request calls this server by a name that it does not know: use its IP address, " +
			"list the name in http.hosts, or set http.token"
	}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); scope == config.ScopeAdmin &&
		(err != nil || !from.Addr().Unmap().IsLoopback()) {
		return "without http.token, this is for requests from this machine alone"
	}
	return ""
}

// hostOf returns the host of an address with or without a port, as names are compared.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
