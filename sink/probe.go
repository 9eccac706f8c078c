package sink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// noConditionsHint says what to do about ErrNoConditions.
const noConditionsHint = "the commit protocol needs PUT with If-None-Match: use AWS S3, MinIO, Ceph RGW or " +
	"another store that enforces it, check that no proxy strips the header, or use a file:// store"

const probePrefix = "probe/"

// Probe proves that the store enforces create-once: it creates an object under a fresh key below
// probe/, and again with other bytes, which must fail with ErrExists. It returns ErrNoConditions
// where the second one succeeds. The object is removed afterwards.
func Probe(ctx context.Context, s Store) error {
	key := probePrefix + rand.Text()
	err := s.Create(ctx, key, []byte("first"))
	if err != nil {
		return fmt.Errorf("probe %s: cannot create an object: %w", s.URL(), err)
	}
	second := s.Create(ctx, key, []byte("second"))
	// The context may have ended; the probe object must not stay for that.
	cleanup := s.Delete(context.WithoutCancel(ctx), key)
	switch {
	case second == nil:
		return fmt.Errorf("probe %s: %w", s.URL(),
			&Error{Op: "create", Key: key, Err: ErrNoConditions, Hint: noConditionsHint})
	case !errors.Is(second, ErrExists):
		return fmt.Errorf("probe %s: cannot tell whether create-once is enforced: %w", s.URL(), second)
	case cleanup != nil:
		return fmt.Errorf("probe %s: cannot delete the probe object: %w", s.URL(), cleanup)
	}
	return nil
}

// RemoveProbes removes probe objects that were last changed before the given time: processes that
// died while they probed have left them. Choose a time that spares running probes. A probe that
// loses its object concludes that the store enforces nothing.
func RemoveProbes(ctx context.Context, s Store, before time.Time) error {
	for info, err := range s.List(ctx, probePrefix, "") {
		if err == nil && info.Modified.Before(before) {
			err = s.Delete(ctx, info.Key)
		}
		if err != nil {
			return fmt.Errorf("remove old probes: %w", err)
		}
	}
	return nil
}
