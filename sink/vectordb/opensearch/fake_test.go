package opensearch_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
)

// fake is no OpenSearch: it answers the requests of this package as OpenSearch's documentation says, with external
// versions that outlive deletions. It refuses what it does not know.
type fake struct {
	t       *testing.T
	mu      sync.Mutex
	indexes map[string]map[string]*fakeDoc
	aliases map[string]map[string]bool // alias to indexes
	dims    map[string]int
	plugins string
	seq     int64
}

type fakeDoc struct {
	version, seq int64
	source       json.RawMessage // nil after a deletion
}

func startFake(t *testing.T) (*fake, string) {
	f := &fake{t: t, indexes: map[string]map[string]*fakeDoc{}, aliases: map[string]map[string]bool{},
		dims: map[string]int{}, plugins: "opensearch-knn"}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

type object = map[string]any

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := func(status int, body any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name, rest := parts[0], strings.Join(parts[1:], "/")
	switch {
	case r.URL.Path == "/":
		reply(200, object{"version": object{"distribution": "opensearch", "number": "3.0.0"}})
		return
	case name == "_cat":
		reply(200, []object{{"component": f.plugins}})
		return
	case name == "_aliases":
		f.alias(r)
		reply(200, object{"acknowledged": true})
		return
	}
	if rest == "_mget" {
		for to := range f.aliases[name] {
			name = to
		}
	}
	docs, there := f.indexes[name]
	switch {
	case r.Method == http.MethodHead && !there:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodPut && rest == "":
		f.create(r, name)
		reply(200, object{"acknowledged": true})
	case rest == "_bulk":
		f.bulk(w, r, name)
	case !there:
		reply(404, object{"error": object{"type": "index_not_found_exception"}})
	case r.Method == http.MethodDelete && rest == "":
		delete(f.indexes, name)
		for _, of := range f.aliases {
			delete(of, name)
		}
		reply(200, object{"acknowledged": true})
	case rest == "_settings", rest == "_refresh", rest == "_mapping":
		reply(200, object{"acknowledged": true})
	case rest == "_mget":
		var body struct{ IDs []string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		out := []any{}
		for _, id := range body.IDs {
			out = append(out, found(id, docs[id]))
		}
		reply(200, object{"docs": out})
	case len(parts) == 3 && parts[1] == "_doc" && r.Method == http.MethodGet:
		d := docs[parts[2]]
		if d == nil {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"_index":%q,"_id":%q,"found":false}`, name, parts[2])
			return
		}
		reply(200, found(parts[2], d))
	case len(parts) == 3 && parts[1] == "_doc" && r.Method == http.MethodPut:
		d, q := docs[parts[2]], r.URL.Query()
		if d != nil && (q.Get("op_type") == "create" || q.Get("if_seq_no") != fmt.Sprint(d.seq)) {
			reply(409, object{"error": object{"type": "version_conflict_engine_exception"}})
			return
		}
		f.seq++
		d = &fakeDoc{seq: f.seq}
		_ = json.NewDecoder(r.Body).Decode(&d.source)
		docs[parts[2]] = d
		reply(200, object{"result": "updated"})
	default:
		f.t.Errorf("an unknown request: %s %s", r.Method, r.URL)
		reply(400, object{"error": "unknown"})
	}
}

func found(id string, d *fakeDoc) object {
	if d == nil || d.source == nil {
		return object{"_id": id, "found": false}
	}
	return object{"_id": id, "found": true, "_seq_no": d.seq, "_primary_term": 1, "_source": d.source}
}

func (f *fake) create(r *http.Request, name string) {
	var body struct {
		Aliases  object
		Mappings struct {
			Properties struct{ Embedding struct{ Dimension int } }
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	f.indexes[name], f.dims[name] = map[string]*fakeDoc{}, body.Mappings.Properties.Embedding.Dimension
	for alias := range body.Aliases {
		f.aliases[alias] = map[string]bool{name: true}
	}
}

func (f *fake) alias(r *http.Request) {
	var body struct {
		Actions []map[string]struct{ Index, Alias string }
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	for _, a := range body.Actions {
		if remove, ok := a["remove"]; ok {
			for index := range f.aliases[remove.Alias] {
				if match, _ := path.Match(remove.Index, index); match {
					delete(f.aliases[remove.Alias], index)
				}
			}
		}
		if add, ok := a["add"]; ok {
			if f.aliases[add.Alias] == nil {
				f.aliases[add.Alias] = map[string]bool{}
			}
			f.aliases[add.Alias][add.Index] = true
		}
	}
}

func (f *fake) bulk(w http.ResponseWriter, r *http.Request, name string) {
	index := name
	if r.URL.Query().Get("require_alias") == "true" {
		index = ""
		for to := range f.aliases[name] {
			index = to
		}
	}
	docs := f.indexes[index]
	body, _ := io.ReadAll(r.Body)
	if docs == nil && !bytes.Contains(body, []byte(`{"index":`)) && name == strings.ToLower(name) {
		// A deletion with an external version makes an index, whatever require_alias says.
		docs = map[string]*fakeDoc{}
		f.indexes[name] = docs
	}
	type result struct {
		ID     string `json:"_id"`
		Status int    `json:"status"`
		Error  any    `json:"error,omitempty"`
	}
	items, failed := []map[string]result{}, false
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var action map[string]struct {
			ID      string `json:"_id"`
			Version int64  `json:"version"`
			Seq     *int64 `json:"if_seq_no"`
			Type    string `json:"version_type"`
		}
		if err := json.Unmarshal(lines.Bytes(), &action); err != nil {
			f.t.Errorf("bulk: %v", err)
		}
		for kind, a := range action {
			var source json.RawMessage
			if kind == "index" {
				lines.Scan()
				source = append(source, lines.Bytes()...)
			}
			out := result{ID: a.ID, Status: 200}
			var vector struct{ Embedding []float32 }
			_ = json.Unmarshal(source, &vector)
			old := docs[a.ID]
			switch {
			case docs == nil:
				out.Status, out.Error = 404, object{"type": "index_not_found_exception"}
			case len(vector.Embedding) > 0 && len(vector.Embedding) != f.dims[index]:
				out.Status, out.Error = 400, object{"type": "mapper_parsing_exception"}
			case a.Seq != nil && (old == nil || old.seq != *a.Seq):
				out.Status, out.Error = 409, object{"type": "version_conflict_engine_exception"}
			case a.Seq != nil:
				f.seq++
				docs[a.ID] = &fakeDoc{version: old.version + 1, seq: f.seq, source: source}
			case old != nil && (a.Version < old.version || a.Version == old.version && a.Type == "external"):
				out.Status, out.Error = 409, object{"type": "version_conflict_engine_exception"}
			default:
				if kind == "delete" && (old == nil || old.source == nil) {
					out.Status = 404
				}
				f.seq++
				docs[a.ID] = &fakeDoc{version: a.Version, seq: f.seq, source: source}
			}
			failed = failed || out.Status >= 400
			items = append(items, map[string]result{kind: out})
		}
	}
	_ = json.NewEncoder(w).Encode(object{"errors": failed, "items": items})
}
