package config

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Scopes of tokens.
const (
	ScopeRead  = "read"  // answers, metrics and the page
	ScopeEmbed = "embed" // what encodes texts of the request
	ScopeAdmin = "admin" // the configuration
)

var scopes = List{ScopeRead, ScopeEmbed, ScopeAdmin}

// HTTP serves a page to watch, metrics, health, and with the role serve answers.
type HTTP struct {
	Listen string `yaml:"listen" effect:"restart"` // host:port; "" is off
	// Token is asked of clients; "" asks for none, unless there are Tokens. Health checks are open.
	Token Secret `yaml:"token" effect:"live"`
	// Tokens are in the place of Token where clients differ in what they may.
	Tokens []Bearer `yaml:"tokens" effect:"live"`
	// Hosts are the names by which requests without a token may call the server, besides IP addresses, localhost
	// and the name in Listen.
	Hosts List    `yaml:"hosts" effect:"restart"`
	TLS   HTTPTLS `yaml:"tls"`
	CORS  CORS    `yaml:"cors"`
	// Slow is how long an answer may take without a line in the log; 0 is any time.
	Slow time.Duration `yaml:"slow" effect:"restart"`
}

// CORS says which pages may read answers, besides those of the server itself.
type CORS struct {
	Origins List `yaml:"origins" effect:"restart"` // as browsers send them: https://shop.example
}

// HTTPTLS has the server speak HTTPS.
type HTTPTLS struct {
	CertFile string `yaml:"cert_file" effect:"restart"` // read again when it changes, as is KeyFile
	KeyFile  string `yaml:"key_file" effect:"restart"`
}

// Bearer is a client that bears a token.
type Bearer struct {
	Name   string `yaml:"name"` // in metrics, logs and errors
	Token  Secret `yaml:"token"`
	Scopes List   `yaml:"scopes"`
	// Rate bounds its requests a second, and Concurrent those at once; 0 does not.
	Rate       float64 `yaml:"rate"`
	Concurrent int     `yaml:"concurrent"`
}

// bearerName has no character that a metric, a log or a header would quote.
var bearerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (v *validator) http(h *HTTP) {
	v.check(h.Listen == "" || isHostPort(h.Listen), "http.listen", `must be host:port, or "" for off`)
	v.check(!strings.ContainsFunc(string(h.Token), unicode.IsSpace), "http.token", "must hold no space")
	v.check(h.Token == "" || len(h.Tokens) == 0, "http.token",
		"must not be given together with http.tokens: move it there, with a name and the scopes %s",
		strings.Join(scopes, ", "))
	v.check(h.TLS.KeyFile == "" || h.TLS.CertFile != "", "http.tls.cert_file", "must be given with key_file")
	v.check(h.TLS.CertFile == "" || h.TLS.KeyFile != "", "http.tls.key_file", "must be given with cert_file")
	v.atLeastTime("http.slow", h.Slow, 0)
	for i, o := range h.CORS.Origins {
		own := strings.HasPrefix(o, "http:") && strings.HasSuffix(o, ":80") ||
			strings.HasPrefix(o, "https:") && strings.HasSuffix(o, ":443")
		v.check(origin.MatchString(o) && !own, listPath("http.cors.origins", i, len(h.CORS.Origins)),
			"must be an origin as browsers send it, such as https://shop.example or http://localhost:8000")
	}
	for i, b := range h.Tokens {
		v.bearer(elementPath("http.tokens", i), &b, h.Tokens[:i])
	}
	for i, host := range h.Hosts {
		v.check(hostName.MatchString(host), listPath("http.hosts", i, len(h.Hosts)),
			"must be a host name, without a port")
	}
}

// origin matches what browsers send: without a path, without the scheme's own port, in lower case.
var origin = regexp.MustCompile(`^https?://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)

// bearer checks one that comes after others.
func (v *validator) bearer(path string, b *Bearer, others []Bearer) {
	v.check(bearerName.MatchString(b.Name), path+".name", "must be a name of letters, digits, _ and -")
	v.check(b.Token != "" && !strings.ContainsFunc(string(b.Token), unicode.IsSpace), path+".token",
		"must be given, and hold no space")
	v.check(len(b.Scopes) > 0, path+".scopes", "must be some of %s", strings.Join(scopes, ", "))
	for _, scope := range b.Scopes {
		v.check(slices.Contains(scopes, scope), path+".scopes", "must be some of %s", strings.Join(scopes, ", "))
	}
	v.check(b.Rate >= 0 && b.Rate <= 1e6, path+".rate", "must be from 0 to 1000000 requests a second, got %v", b.Rate)
	v.atLeast(path+".concurrent", b.Concurrent, 0)
	for _, other := range others {
		v.check(other.Name != b.Name, path+".name", "is the name of another token, too")
		v.check(other.Token != b.Token, path+".token", "is the token of another name, too")
	}
}
