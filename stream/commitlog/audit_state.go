package commitlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"giantstream/sink"
	"giantstream/sink/audit"
)

// checkpoints verifies the copies of the state. Only the newest two are kept, and the files of older ones may
// be gone.
func (s *shardAudit) checkpoints(ctx context.Context) error {
	numbers, err := CheckpointNumbers(ctx, s.Store, s.shard)
	if err != nil {
		return err
	}
	for i, number := range numbers {
		key := checkpointKey(s.shard, number)
		c, err := ReadCheckpoint(ctx, s.Store, s.shard, number)
		if err != nil && !errors.Is(err, ErrBadCheckpoint) {
			return err
		}
		if err == nil {
			s.Document(key, c.Format > 1)
			if i < len(numbers)-keepCheckpoints {
				continue
			}
			err = s.standsInLog(c)
		} else {
			s.Claim(key)
		}
		object := key
		if c != nil {
			for _, f := range c.Files {
				damage, verr := s.stateFile(ctx, f)
				if verr != nil {
					return verr
				}
				if damage != nil && err == nil {
					err, object = damage, f.Key
				}
			}
		}
		if err == nil {
			continue
		}
		if err := s.Found(ctx, audit.Finding{Kind: audit.Derived, Object: object, What: err.Error(),
			Lost: "nothing but time: after the loss of a disk, the state is restored from the checkpoint before it, " +
				"or read from the topics"},
			fmt.Sprintf("remove the document of checkpoint %d; stop the pipeline before", number),
			func(ctx context.Context) error { return s.Store.Delete(ctx, key) }); err != nil {
			return err
		}
	}
	return nil
}

// standsInLog compares a checkpoint with its manifest.
func (s *shardAudit) standsInLog(c *Checkpoint) error {
	if m := s.log[c.Seq]; m != nil && m.Writer != c.Writer {
		return fmt.Errorf("%w: it knows manifest %d from %q, but %q wrote it", ErrBadCheckpoint, c.Seq, c.Writer,
			m.Writer)
	}
	return nil
}

// stateFile reads a file of a checkpoint through.
func (s *shardAudit) stateFile(ctx context.Context, f CheckpointFile) (damage, err error) {
	s.Claim(f.Key)
	object, err := s.Store.Open(ctx, f.Key)
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
		return fmt.Errorf("%w: %s (%s) is not what was stored", ErrBadCheckpoint, f.Key, f.Name), nil
	}
	s.Counted(n)
	return nil, nil
}

// published checks the cursor of a topic.
func (s *shardAudit) published(outlet Outlet) func(context.Context) error {
	return func(ctx context.Context) error { return s.cursor(ctx, outlet.key(s.shard)) }
}

// cursor checks one of the cursors of the embeddings.
func (s *shardAudit) cursor(ctx context.Context, key string) error {
	if !s.Has(key) {
		return nil
	}
	data, err := sink.ReadAll(ctx, s.Store, key)
	if err != nil {
		return err
	}
	var p Published
	sealed, err := decodeSealed(data, &p)
	s.Document(key, sealed)
	if err == nil && (p.Seq < 0 || p.Generation < 0) {
		err = fmt.Errorf("it says that manifest %d is published with generation %d", p.Seq, p.Generation)
	}
	if err == nil {
		return nil
	}
	return s.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
		Lost: "nothing: the shard's embeddings are published again"}, "remove the cursor",
		func(ctx context.Context) error { return s.Store.Delete(ctx, key) })
}
