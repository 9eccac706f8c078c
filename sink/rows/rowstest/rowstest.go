// Package rowstest writes the row files that tests read.
package rowstest

import (
	"testing"

	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
)

// Put stores the rows under key. A failure ends the test.
func Put(t testing.TB, s sink.Store, key string, all []rows.Row) parquetio.Info {
	t.Helper()
	info, err := rows.Nodes.Write(t.Context(), s, key, rows.WriteOptions{}, func(yield func(rows.Row, error) bool) {
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return info
}
