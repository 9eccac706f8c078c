package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/internal/rest"
)

// Remaining implements vectordb.Index.
func (x *Index) Remaining(ctx context.Context, nodes []string) (map[string]int, error) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(id string) bool { return x.Check(id) != nil })
	at, err := x.catalog(ctx)
	if rest.Status(err) == http.StatusNotFound {
		return nil, nil // nothing has ever been opened
	}
	if err != nil {
		return nil, err
	}
	var c vectordb.Catalog
	if at.Found {
		if err := json.Unmarshal([]byte(at.Source.Document), &c); err != nil {
			return nil, fmt.Errorf("%w: the catalog in %s_sink: %w", vectordb.ErrRefused, x.name, err)
		}
	}
	return c.Remaining(x.name, nodes, func(index string, nodes []string) (n int, err error) {
		var answer struct {
			Docs []stored[json.RawMessage] `json:"docs"`
		}
		err = x.c.Do(ctx, http.MethodPost, "/"+index+"/_mget?_source=false", object{"ids": nodes}, &answer)
		if rest.Status(err) == http.StatusNotFound {
			return 0, nil
		}
		for _, d := range answer.Docs {
			if d.Found {
				n++
			}
		}
		return n, err
	})
}
