package qdrant_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fake is no Qdrant: it answers the requests of this package as Qdrant's published interface (1.16) says. It refuses
// what it does not know, so that a request that is new here has to be added.
type fake struct {
	t  *testing.T
	mu sync.Mutex
	// collections hold points by id, as JSON writes it.
	collections map[string]map[string]*fakePoint
	dims        map[string]int
	aliases     map[string]string
	version     string
}

type fakePoint struct {
	ID      any                  `json:"id"`
	Vector  map[string][]float32 `json:"vector"`
	Payload map[string]any       `json:"payload"`
}

func startFake(t *testing.T) (*fake, string) {
	f := &fake{t: t, collections: map[string]map[string]*fakePoint{}, dims: map[string]int{},
		aliases: map[string]string{}, version: "1.16.0"}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body struct {
		Points  json.RawMessage                `json:"points"`
		Update  map[string]any                 `json:"update_filter"`
		IDs     []any                          `json:"ids"`
		Payload map[string]any                 `json:"payload"`
		Vectors map[string]struct{ Size int }  `json:"vectors"`
		Actions []map[string]map[string]string `json:"actions"`
	}
	if r.Body != nil && r.ContentLength > 0 {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	reply := func(result any) { _ = json.NewEncoder(w).Encode(map[string]any{"result": result, "status": "ok"}) }
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	request := r.Method + " " + strings.Join(path[min(2, len(path)):], "/")
	switch {
	case r.URL.Path == "/":
		_ = json.NewEncoder(w).Encode(map[string]string{"title": "qdrant - vector search engine", "version": f.version})
		return
	case r.URL.Path == "/aliases":
		list := []map[string]string{}
		for alias, to := range f.aliases {
			list = append(list, map[string]string{"alias_name": alias, "collection_name": to})
		}
		reply(map[string]any{"aliases": list})
		return
	case r.URL.Path == "/collections/aliases":
		for _, a := range body.Actions {
			if d := a["delete_alias"]; d != nil {
				delete(f.aliases, d["alias_name"])
			}
			if c := a["create_alias"]; c != nil {
				f.aliases[c["alias_name"]] = c["collection_name"]
			}
		}
		reply(true)
		return
	}
	name := path[1]
	points, there := f.collections[name]
	if !there && request != "GET exists" && request != "PUT " {
		http.Error(w, fmt.Sprintf(`{"status":{"error":"Not found: Collection %s doesn't exist!"}}`, name), http.StatusNotFound)
		return
	}
	switch request {
	case "GET exists":
		reply(map[string]bool{"exists": there})
	case "PUT ":
		if there {
			http.Error(w, "exists", http.StatusConflict)
			return
		}
		f.collections[name], f.dims[name] = map[string]*fakePoint{}, body.Vectors["embedding"].Size
		reply(true)
	case "GET ":
		reply(map[string]string{"status": "green"})
	case "PATCH ":
		reply(true)
	case "DELETE ":
		delete(f.collections, name)
		reply(true)
	case "PUT points":
		var list []*fakePoint
		if err := json.Unmarshal(body.Points, &list); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, p := range list {
			if v := p.Vector["embedding"]; v != nil && len(v) != f.dims[name] {
				http.Error(w, "Wrong input: Vector dimension error", http.StatusBadRequest)
				return
			}
		}
		for _, p := range list {
			id := fmt.Sprint(p.ID)
			if old := points[id]; old == nil || holds(f.t, body.Update, old.Payload) {
				points[id] = p
			}
		}
		reply(map[string]string{"status": "completed"})
	case "POST points/payload":
		var ids []any
		_ = json.Unmarshal(body.Points, &ids)
		for _, id := range ids {
			if p := points[fmt.Sprint(id)]; p != nil {
				for k, v := range body.Payload {
					p.Payload[k] = v
				}
			}
		}
		reply(map[string]string{"status": "completed"})
	case "POST points":
		list := []*fakePoint{}
		for _, id := range body.IDs {
			if p := points[fmt.Sprint(id)]; p != nil {
				list = append(list, p)
			}
		}
		reply(list)
	default:
		f.t.Errorf("an unknown request: %s %s", r.Method, r.URL)
		http.Error(w, "unknown", http.StatusBadRequest)
	}
}

// holds evaluates a filter on a payload. A field that is missing meets no condition.
func holds(t *testing.T, filter, payload map[string]any) bool {
	list := func(key string) []any { l, _ := filter[key].([]any); return l }
	for _, c := range list("must") {
		if !holds(t, c.(map[string]any), payload) {
			return false
		}
	}
	if should := list("should"); len(should) > 0 {
		for _, c := range should {
			if holds(t, c.(map[string]any), payload) {
				return true
			}
		}
		return false
	}
	key, ok := filter["key"].(string)
	if !ok {
		return true
	}
	value, ok := payload[key]
	if !ok {
		return false
	}
	if m, ok := filter["match"].(map[string]any); ok {
		return m["value"] == value
	}
	bounds, ok := filter["range"].(map[string]any)
	n, number := value.(float64)
	if !ok || !number {
		t.Errorf("a condition that is not known: %v", filter)
		return false
	}
	if lt, ok := bounds["lt"].(float64); ok && n >= lt {
		return false
	}
	if lte, ok := bounds["lte"].(float64); ok && n > lte {
		return false
	}
	return true
}
