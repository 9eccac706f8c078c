package lease

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
)

// Audit checks the objects of all leases in a store.
func Audit(ctx context.Context, a *audit.Audit, now time.Time) error {
	for _, k := range a.Keys("lease/") {
		name, _, _ := strings.Cut(strings.TrimPrefix(k, "lease/"), "/")
		number, ok := numberOf(name, k)
		if !ok {
			continue
		}
		data, err := sink.ReadAll(ctx, a.Store, k)
		if audit.IsDamage(err) {
			continue // a holder of a higher number has removed it
		}
		if err != nil {
			return err
		}
		body, sealed, _ := seal.Open(data, sink.PlaceOf(a.Store, k))
		_, err = decode(data, sink.PlaceOf(a.Store, k), number)
		if err == nil {
			err = strict(body)
		}
		a.Document(k, sealed)
		if err == nil {
			continue
		}
		if err := a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: k, What: err.Error(),
			Lost: "nothing: the lease expires after " + defaultTTL.String() + ", unless its holder repairs it",
		},
			"release the lease under its number",
			func(ctx context.Context) error { _, err := Repair(ctx, a.Store, name, now); return err }); err != nil {
			return err
		}
	}
	return nil
}

// strict refuses fields that a record does not have.
func strict(body []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	return dec.Decode(&Record{})
}
