package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// moveBackTime bounds the store calls of a follower that may have lost its shard.
const moveBackTime = 10 * time.Second

// moveBack takes care of records that this follower has sent and the cursor does not cover. Another
// follower may have sent newer ones meanwhile, because this process was frozen or cut off while it
// was sending, so that these records may have reached the topic last. If the cursor has moved past
// the position from which they were sent, or to another generation, moveBack moves it back there, and the
// shard's owner publishes from there again. If not, moveBack writes it as it is: another follower that has sent
// newer records and is about to move the cursor past them then fails, and sends them again.
//
// If the store does not answer, sending and failed stay set and the cursor in memory stays what it is. The
// next step then begins with moveBack.
func (f *Follower) moveBack(ctx context.Context) error {
	switch {
	case !f.failed:
		return nil
	case !f.sending:
		f.failed, f.since = false, time.Time{}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveBackTime)
	defer cancel()
	err := sink.ErrChanged
	for errors.Is(err, sink.ErrChanged) {
		var now commitlog.Cursor
		if now, err = f.openCursor(ctx); err != nil {
			break
		}
		to := now.Published
		if now.Generation != f.cursor.Generation || now.Seq > f.cursor.Seq || f.cursor.Mixed && !now.Mixed ||
			now.Attributes != f.cursor.Attributes {
			f.opts.Log.Warn("another worker went on with this shard while embeddings were under way; "+
				"they will be published again", "from", f.cursor.Seq, "to", now.Seq)
			to = f.cursor.Published
			to.Mixed = to.Mixed || now.Mixed
			to.Attributes = cmp.Or(to.Attributes, now.Attributes)
			to.Ahead = max(to.Ahead, now.Ahead, now.Seq)
		}
		err = now.Move(ctx, to, f.session)
	}
	if err != nil {
		f.opts.Log.Warn("cannot tell whether another worker has this shard; trying again", "error", err)
		return fmt.Errorf("compare the cursor of shard %d with what was sent: %w", f.opts.Shard, err)
	}
	f.sending, f.failed, f.since = false, false, time.Time{}
	return nil
}
