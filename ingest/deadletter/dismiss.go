package deadletter

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"giantstream/ingest/client"
)

// MaxReason is how long the reason of a dismissal may be, in bytes.
const MaxReason = 500

// CheckReason says what is wrong with the reason of a dismissal.
func CheckReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errors.New("a dismissal needs a reason: those who find the letters later will ask")
	case len(reason) > MaxReason || !utf8.ValidString(reason):
		return errors.New("the reason is at most 500 bytes of UTF-8")
	}
	return nil
}

// Dismiss closes the matching letters that are open, for a reason, and returns how many they are. Their records are
// not sent again, and the letters stay on the topic as long as it keeps them. After an interruption some are closed;
// the others follow with the next call.
func Dismiss(ctx context.Context, c *client.Client, topic string, f Filter, reason string, clock func() time.Time) (
	n int, err error) {
	if err := CheckReason(reason); err != nil {
		return 0, err
	}
	f.All, f.Dismissed = false, false
	p := c.NewProducer()
	defer p.Close() //nolint:errcheck // Flush reports what matters.
	for l, err := range List(ctx, c, topic, f) {
		if err != nil {
			return n, err
		}
		if err := p.Send(ctx, mark(topic, l.Origin, closing{dismissedMark, clock(), reason})); err != nil {
			return n, err
		}
		n++
	}
	return n, p.Flush(ctx)
}
