package endpoint

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"giantstream/config"
)

// Protect passes on requests that may read what a server knows: those that bear the token, or, if none is configured,
// those that call the server by a name of its own. A page of another site that a browser shows can have its own name
// lead to the server's address (DNS rebinding) and then read the answers; but it cannot have the browser call the
// server by another name than its own. An IP address as the host is no such name, so probes and scrapers that find
// pods by address pass.
func Protect(h config.HTTP, next http.Handler) http.Handler {
	if h.Token == "" {
		return checkHost(h, next)
	}
	want := sha256.Sum256([]byte(h.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		have := sha256.Sum256([]byte(given))
		// The comparison takes the same time wherever the tokens differ, and of whatever length they are.
		if subtle.ConstantTimeCompare(have[:], want[:]) != 1 || !bearer {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this page asks for the token of http.token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkHost passes on requests whose Host is an IP address, localhost, or a name that the configuration has.
func checkHost(h config.HTTP, next http.Handler) http.Handler {
	names := []string{"", "localhost", hostOf(h.Listen)} // no browser leaves the host out
	for _, name := range h.Hosts {
		names = append(names, hostOf(name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if _, err := netip.ParseAddr(host); err != nil && !slices.Contains(names, host) {
			http.Error(w, "the request calls this server by a name that it does not know: use its IP address, "+
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
