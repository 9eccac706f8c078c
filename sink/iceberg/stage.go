package iceberg

import (
	"context"
	"fmt"
	"maps"

	"github.com/apache/iceberg-go"
)

// stage are data files of changes that are not committed yet, because the window that they belong to has not ended:
// a snapshot has whole windows, and the memory is bounded.
type stage struct {
	serial int64
	files  []iceberg.DataFile
	places map[string]Place // of the newest rows
	gone   []Place          // of rows of these files that newer ones replace
}

// belongsTo reports whether the stage has files of a table.
func (s *stage) belongsTo(serial int64) bool { return s != nil && s.serial == serial }

// stage writes what is held for a table into a data file. Deletions stay.
func (x *Index) stage(ctx context.Context, serial int64) error {
	upserts := live(x.sorted(serial))
	if len(upserts) == 0 {
		return nil
	}
	if x.staged == nil {
		x.staged = &stage{serial: serial, places: map[string]Place{}}
	}
	f, places, err := x.putRows(ctx, fmt.Sprintf("g0_%d/%s.parquet", serial, newName()), upserts)
	if err != nil {
		return err
	}
	s := x.staged
	for _, c := range upserts {
		if old, ok := s.places[c.node]; ok {
			s.gone = append(s.gone, old)
		}
		delete(x.buffers[serial], c.node)
		x.size -= c.bytes
	}
	maps.Copy(s.places, places)
	s.files = append(s.files, f)
	return nil
}
