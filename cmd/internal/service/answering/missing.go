package answering

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"giantstream/train/answer"
)

// answerMissing answers a request that no route is for, as h of the ServeMux would, with the status and the headers
// that h gives it, and says in the shape of the path's errors what can be asked instead.
func (a *Answer) answerMissing(w http.ResponseWriter, r *http.Request, h http.Handler) {
	shape := r.URL.Path
	if strings.HasPrefix(shape, "/v1/") {
		shape = answer.OpenAIPath // clients of OpenAI ask for models, say
	}
	h.ServeHTTP(&refusing{ResponseWriter: w, refuse: func(status int) string {
		path := fmt.Sprintf("%.200s", r.URL.Path)
		switch {
		case status == http.StatusMethodNotAllowed:
			return fmt.Sprintf("%s is not a method of %s: use %s", r.Method, path, w.Header().Get("Allow"))
		case a.Catalog == nil && asksCatalog(path):
			return "this process does not answer questions: its roles (--roles) lack serve"
		case a.Catalog == nil:
			return fmt.Sprintf("nothing is at %s", path)
		}
		return fmt.Sprintf("nothing is at %s: /openapi.json lists what can be asked", path)
	}, write: answer.Refuse(shape)}, r)
}

// asksCatalog reports whether a path is one of the role serve, or is meant to be one.
func asksCatalog(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"similar", "goes-with", "embed", "v1", "openapi.json"}, first)
}

// refusing has an error's text replaced by another.
type refusing struct {
	http.ResponseWriter
	refuse func(status int) string
	write  func(w http.ResponseWriter, message string, status int)
}

// WriteHeader writes the whole answer.
func (r *refusing) WriteHeader(status int) {
	if status < http.StatusBadRequest { // a redirect
		r.ResponseWriter.WriteHeader(status)
		return
	}
	r.write(r.ResponseWriter, r.refuse(status), status)
}

// Write drops the text of net/http.
func (r *refusing) Write(b []byte) (int, error) { return len(b), nil }
