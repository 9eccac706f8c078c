package checkpoint

import (
	"context"
	"errors"
	"iter"

	"giantstream/sink"
)

// Superfluous yields what a shard no longer needs, for a caller that removes it: the documents of
// all but the newest two checkpoints, and then the files that neither these name nor a later one
// may name. The package comment says why this is safe beside uploads.
func Superfluous(ctx context.Context, store sink.Store, shard int) iter.Seq2[sink.Info, error] {
	return func(yield func(sink.Info, error) bool) {
		kept, newest, err := Kept(ctx, store, shard)
		if errors.Is(err, ErrBad) || err == nil && newest == 0 {
			return // the document that cannot be read may name any file
		}
		if err != nil {
			yield(sink.Info{}, err)
			return
		}
		named := map[string]bool{}
		for _, c := range kept {
			for _, f := range c.Files {
				named[f.Key] = true
			}
		}
		for info, err := range store.List(ctx, prefix(shard), "") {
			if number, ours := numberOf(shard, info.Key); err == nil && (!ours || number >= kept[0].Number) {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
		for info, err := range store.List(ctx, filePrefix(shard), "") {
			number, ours := fileNumber(shard, info.Key)
			if err == nil && (!ours || named[info.Key]) {
				continue
			}
			if err == nil && number >= newest {
				return // keys ascend by number: the next checkpoint may name these
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}
