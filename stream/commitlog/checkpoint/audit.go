package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"giantstream/sink"
	"giantstream/sink/audit"
)

// Audit verifies the checkpoints of a shard. Only the newest two are kept, and the files of older
// ones may be gone. writerOf returns the writer of a manifest of the shard, "" if it is not known.
func Audit(ctx context.Context, a *audit.Audit, shard int, writerOf func(seq int64) string) error {
	if err := auditStandby(ctx, a, shard); err != nil {
		return err
	}
	numbers, err := Numbers(ctx, a.Store, shard)
	if err != nil {
		return err
	}
	for i, number := range numbers {
		key := Key(shard, number)
		c, err := Read(ctx, a.Store, shard, number)
		if err != nil && !errors.Is(err, ErrBad) {
			return err
		}
		if err == nil {
			a.Document(key, c.Format > 1)
			if i < len(numbers)-keep {
				continue
			}
			err = c.standsInLog(writerOf(c.Seq))
		} else {
			a.Claim(key)
		}
		damaged := map[string]error{}
		if err != nil {
			damaged[key] = err
		}
		if c != nil {
			for _, f := range c.Files {
				damage, err := f.verify(ctx, a)
				if err != nil {
					return err
				}
				if damage != nil {
					damaged[f.Key] = damage
				}
			}
		}
		for _, object := range slices.Sorted(maps.Keys(damaged)) {
			if err := a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: object, What: damaged[object].Error(),
				Lost: "nothing but time: after the loss of a disk, the state is restored from the checkpoint before " +
					"it, or read from the topics"},
				fmt.Sprintf("remove the document of checkpoint %d; stop the pipeline before", number),
				func(ctx context.Context) error { return a.Store.Delete(ctx, key) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// auditStandby checks the note of who keeps a checkpoint warm.
func auditStandby(ctx context.Context, a *audit.Audit, shard int) error {
	key := standbyKey(shard)
	if !a.Has(key) {
		return nil
	}
	c, err := ReadStandby(ctx, a.Store, shard)
	if err != nil {
		return err
	}
	a.Document(key, true)
	if c.stored == nil || c.Format == standbyFormat {
		return nil
	}
	return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: "it is not what was stored",
		Lost: "which worker keeps the newest checkpoint warm: the next one writes it again"}, "remove it",
		func(ctx context.Context) error { return a.Store.Delete(ctx, key) })
}

// standsInLog compares a checkpoint with the writer of its manifest, "" if that is not known.
func (c *Document) standsInLog(writer string) error {
	if writer != "" && writer != c.Writer {
		return fmt.Errorf("%w: it knows manifest %d from %q, but %q wrote it", ErrBad, c.Seq, c.Writer, writer)
	}
	return nil
}

// verify reads the file through.
func (f File) verify(ctx context.Context, a *audit.Audit) (damage, err error) {
	a.Claim(f.Key)
	object, err := a.Store.Open(ctx, f.Key)
	if audit.IsDamage(err) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	h := sha256.New()
	n, err := io.Copy(h, sink.Sequential(object))
	if err != nil {
		return nil, err
	}
	if n != f.Bytes || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%w: %s (%s) is not what was stored", ErrBad, f.Key, f.Name), nil
	}
	a.Counted(n)
	return nil, nil
}
