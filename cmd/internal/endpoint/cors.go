package endpoint

import (
	"net/http"
	"slices"
)

// AllowOrigins lets pages of other origins, as scheme://host:port, read the answers (CORS), except at some paths. They
// send tokens themselves: credentials that a browser keeps are not sent along. Without origins it does nothing, and
// browsers show the answers to pages of this server alone.
func AllowOrigins(origins, except []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if !slices.Contains(origins, origin) || slices.Contains(except, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			// The browser asks before it sends a request with a token or with JSON, without either.
			h.Set("Access-Control-Allow-Methods", "GET, POST")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
			h.Set("Access-Control-Max-Age", "3600") // seconds
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", "Giantstream-As-Of, Giantstream-Without, Retry-After")
		next.ServeHTTP(w, r)
	})
}
