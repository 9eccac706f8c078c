package live

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"giantstream/cmd/internal/nodemap"
)

//go:embed page.html
var pageSource string

// pageHTML is the page with the colours of the map's groups.
var pageHTML = strings.Replace(pageSource, "/* colours */\n", nodemap.Style(), 1)

// pagePolicy lets the page run its own script and style, and ask this server alone.
var pagePolicy = sync.OnceValue(func() string {
	return fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hashOf("script"), hashOf("style"))
})

// hashOf is the source expression of the page's only element of a name.
func hashOf(element string) string {
	_, text, _ := strings.Cut(pageHTML, "<"+element+">")
	text, _, _ = strings.Cut(text, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ServePage answers with the page, which holds no data.
func ServePage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	fmt.Fprint(w, pageHTML)
}
