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
	return auditSealed(ctx, a, key, &Topic{}, audit.Finding{Kind: audit.Lost,
		Lost: "no worker that copies the topic can start; committed rows are not affected", Do: restoreSource}, "", nil)
}

func auditCopied(ctx context.Context, a *audit.Audit, key string) error {
	return auditSealed(ctx, a, key, &Copied{}, audit.Finding{Kind: audit.Derived,
		Lost: "how far the partition is copied, which matters if its consumer group was moved"},
		"remove the object, which the copier writes again", func(ctx context.Context) error {
			return a.Store.Delete(ctx, key)
		})
}

// auditSealed reads an object into a document, and reports a finding about it if it is damaged.
func auditSealed(ctx context.Context, a *audit.Audit, key string, into any, found audit.Finding, repair string,
	do func(context.Context) error) error {
	sealed, err := readSealed(ctx, a.Store, key, into)
	if err == nil {
		a.Document(key, sealed)
		return nil
	}
	if !audit.IsDamage(err) {
		return err
	}
	a.Claim(key)
	found.Object, found.What = key, err.Error()
	return a.Found(ctx, found, repair, do)
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
