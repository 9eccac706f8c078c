package qdrant_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fake is no Qdrant: it answers the requests of this package as Qdrant's published interface (1.16) says. It refuses
// what it does not know, so that a request, a field or a parameter that is new here has to be looked up and added.
type fake struct {
	t  *testing.T
	mu sync.Mutex
	// collections hold points by id, as JSON writes it.
	collections map[string]map[string]*fakePoint
	dims        map[string]int
	// indexes are those of fields of payloads, with their types.
	indexes map[string]map[string]string
	aliases map[string]string
	version string
}

type fakePoint struct {
	ID      any                  `json:"id"`
	Vector  map[string][]float32 `json:"vector"`
	Payload map[string]any       `json:"payload"`
}

func startFake(t *testing.T) (*fake, string) {
	f := &fake{t: t, collections: map[string]map[string]*fakePoint{}, dims: map[string]int{},
		indexes: map[string]map[string]string{}, aliases: map[string]string{}, version: "1.16.0"}
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
		Field   string                         `json:"field_name"`
		Schema  string                         `json:"field_schema"`
		// Operations of a batch: only set_payload is known.
		Operations []struct {
			Set struct{ Payload, Filter map[string]any } `json:"set_payload"`
		} `json:"operations"`
	}
	content, err := io.ReadAll(r.Body)
	if err == nil && len(content) > 0 {
		err = json.Unmarshal(content, &body)
	}
	if err == nil {
		err = known(r, content)
	}
	if err != nil {
		f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
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
		http.Error(w, fmt.Sprintf(`{"status":{"error":"Not found: Collection %s doesn't exist!"}}`, name),
			http.StatusNotFound)
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
		f.indexes[name] = map[string]string{}
		f.collections[name], f.dims[name] = map[string]*fakePoint{}, body.Vectors["embedding"].Size
		reply(true)
	case "GET ":
		schema := map[string]any{}
		for field, kind := range f.indexes[name] {
			schema[field] = map[string]string{"data_type": kind}
		}
		reply(map[string]any{"status": "green", "payload_schema": schema})
	case "PUT index":
		f.indexes[name][body.Field] = body.Schema
		reply(map[string]string{"status": "completed"})
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
	case "POST points/batch":
		for _, o := range body.Operations {
			for id, p := range points {
				of := maps.Clone(p.Payload)
				if of[hasID] = id; holds(f.t, o.Set.Filter, of) {
					maps.Copy(p.Payload, o.Set.Payload)
				}
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

// schemas are the fields of each request, by the models of Qdrant's own client (qdrant-client 1.20). The models forbid
// other fields.
var schemas = map[string][]string{
	"PUT points":          {"points", "update_filter"},
	"POST points":         {"ids", "with_payload", "with_vector"},
	"POST points/payload": {"payload", "points"},
	"POST points/batch":   {"operations"},
	"operation":           {"set_payload"},
	"set_payload":         {"payload", "filter"},
	"PUT index":           {"field_name", "field_schema"},
	"PUT ":                {"vectors", "optimizers_config"},
	"PATCH ":              {"optimizers_config"},
	"POST ":               {"actions"}, // of aliases
	"point":               {"id", "vector", "payload"},
	"filter":              {"must", "should", "key", "match", "range", "has_id"},
	"range":               {"lt", "lte"},
	"match":               {"value"},
}

// parameters are those of the URL, with their values.
var parameters = map[string][]string{"wait": {"true"}, "ordering": {"weak", "medium", "strong"},
	"consistency": {"all", "majority", "quorum"}}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// known returns what is not in the published interface.
func known(r *http.Request, content []byte) error {
	for name, values := range r.URL.Query() {
		if !slices.Contains(parameters[name], values[0]) {
			return fmt.Errorf("the parameter %s=%v", name, values)
		}
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	request := r.Method + " " + strings.Join(path[min(2, len(path)):], "/")
	if len(content) == 0 {
		return nil
	}
	var body map[string]any
	if err := json.Unmarshal(content, &body); err != nil {
		return err
	}
	if err := fields(request, body); err != nil {
		return err
	}
	ids, _ := body["ids"].([]any)
	points, _ := body["points"].([]any)
	for _, p := range points {
		if point, ok := p.(map[string]any); ok {
			if err := fields("point", point); err != nil {
				return err
			}
			p = point["id"]
		}
		ids = append(ids, p)
	}
	for _, id := range ids {
		n, number := id.(float64)
		text, _ := id.(string)
		if number && (n < 0 || n != math.Trunc(n)) || !number && !uuid.MatchString(text) {
			return fmt.Errorf("the id %v of a point is neither a whole number nor a UUID", id)
		}
	}
	operations, _ := body["operations"].([]any)
	for _, o := range operations {
		if err := fields("operation", o.(map[string]any)); err != nil {
			return err
		}
		set := o.(map[string]any)["set_payload"].(map[string]any)
		if err := errors.Join(fields("set_payload", set), conditions(set["filter"].(map[string]any))); err != nil {
			return err
		}
	}
	filter, _ := body["update_filter"].(map[string]any)
	return conditions(filter)
}

func conditions(filter map[string]any) error {
	if err := fields("filter", filter); err != nil {
		return err
	}
	for _, key := range []string{"must", "should"} {
		all, _ := filter[key].([]any)
		for _, c := range all {
			if err := conditions(c.(map[string]any)); err != nil {
				return err
			}
		}
	}
	for _, kind := range []string{"range", "match"} {
		condition, _ := filter[kind].(map[string]any)
		if err := fields(kind, condition); err != nil {
			return err
		}
	}
	return nil
}

func fields(kind string, of map[string]any) error {
	for name := range of {
		if !slices.Contains(schemas[kind], name) {
			return fmt.Errorf("%q has no field %q", kind, name)
		}
	}
	return nil
}

// hasID is the field that holds finds the id of a point in.
const hasID = " id"

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
	if ids, ok := filter["has_id"].([]any); ok {
		return slices.Contains(ids, payload[hasID])
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
