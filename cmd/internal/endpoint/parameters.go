package endpoint

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Parameters passes on requests whose query has known parameters and nothing else, each once unless it is a list, as
// name[] is, and as those are that are known with List behind the name: a parameter that is ignored gives another
// answer than the one that was asked for. refuse answers the others.
func Parameters(next http.Handler, refuse Refusal, known ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkQuery(r.URL.RawQuery, known); err != nil {
			refuse(w, err.Error(), http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// List follows the name of a parameter that may be given several times.
const List = "..."

func checkQuery(query string, known []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("the query: %w", err)
	}
	for name, given := range values {
		switch {
		case slices.Contains(known, name+List):
		case slices.Contains(known, name) && len(given) > 1 && !strings.HasSuffix(name, "[]"):
			return fmt.Errorf("parameter %q is given %d times", name, len(given))
		case slices.Contains(known, name):
		case len(known) == 0:
			return fmt.Errorf("unknown parameter %q: this takes none in the query", name)
		default:
			return fmt.Errorf("unknown parameter %q; known here: %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}
