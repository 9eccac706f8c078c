package sources

import (
	"context"
	"fmt"
	"strings"

	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/stream/commitlog"
)

// Audit checks all that the store remembers.
func Audit(ctx context.Context, a *audit.Audit) error {
	for _, key := range a.Keys(Prefix) {
		var err error
		switch {
		case strings.Contains(key, lostDir):
			err = auditLost(ctx, a, key)
		case strings.Contains(key, copiedDir):
			err = auditCopied(ctx, a, key)
		default:
			err = auditTopic(ctx, a, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func auditTopic(ctx context.Context, a *audit.Audit, key string) error {
	sealed, err := readSealed(ctx, a.Store, key, &Topic{})
	if err == nil {
		a.Document(key, sealed)
		return nil
	}
	if !audit.IsDamage(err) {
		return err
	}
	a.Claim(key)
	return a.Found(ctx, audit.Finding{Kind: audit.Lost, Object: key, What: err.Error(),
		Lost: "no worker that copies the topic can start; committed rows are not affected", Do: restoreSource}, "", nil)
}

func auditCopied(ctx context.Context, a *audit.Audit, key string) error {
	sealed, err := readSealed(ctx, a.Store, key, &Copied{})
	if err == nil {
		a.Document(key, sealed)
		return nil
	}
	if !audit.IsDamage(err) {
		return err
	}
	a.Claim(key)
	return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
		Lost: "how far the partition is copied, which matters if its consumer group was moved"},
		"remove the object, which the copier writes again", func(ctx context.Context) error {
			return a.Store.Delete(ctx, key)
		})
}

func auditLost(ctx context.Context, a *audit.Audit, key string) error {
	var lost commitlog.ShardLost
	sealed, err := readSealed(ctx, a.Store, key, &lost)
	if err == nil && lostKey(lost) != key {
		err = fmt.Errorf("it says that %s was lost", lost)
	} else if err != nil && !audit.IsDamage(err) {
		return err
	}
	if err == nil {
		a.Document(key, sealed)
		return nil
	}
	a.Claim(key)
	named, ok := lostByKey(key)
	if !ok {
		return a.Found(ctx, audit.Finding{Kind: audit.Orphan, Object: key,
			What: "no worker writes objects of such a name"}, "", nil)
	}
	return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
		Lost: "when the loss was noticed"}, "write the object again from its name", func(ctx context.Context) error {
		return putSealed(ctx, a.Store, key, named, sink.PutBytes)
	})
}
