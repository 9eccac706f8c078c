package answer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AsOfHeader has, in the form of the parameter min_offset, what the catalog had read when an answer was begun.
const AsOfHeader = "Giantstream-As-Of"

// EndOffset in min_offset stands for the newest record of each topic and partition when the request comes.
const EndOffset = "end"

// FreshParameters are those in the query of all questions.
var FreshParameters = []string{"min_offset", "wait", "as_of"}

// Bounds of a wait for what is to be read.
const (
	defFresh = 5 * time.Second
	maxFresh = 20 * time.Second
)

// offset is that of a record of an input topic.
type offset struct {
	topic     string
	partition int
	offset    int64
}

// parseOffsets reads topic:partition:offset, or several with commas between them.
func parseOffsets(list string) (all []offset, err error) {
	for one := range strings.SplitSeq(list, ",") {
		parts := strings.Split(one, ":")
		if len(parts) != 3 || parts[0] == "" {
			return nil, badRequest{fmt.Errorf("min_offset: %q is not of the form topic:partition:offset", one)}
		}
		partition, err := strconv.Atoi(parts[1])
		at, err2 := strconv.ParseInt(parts[2], 10, 64)
		if err := errors.Join(err, err2); err != nil || partition < 0 || at < 0 {
			return nil, badRequest{fmt.Errorf("min_offset: %q has no partition and offset of 0 or more", one)}
		}
		all = append(all, offset{parts[0], partition, at})
	}
	return all, nil
}

// errBehind says what is not read yet.
type errBehind struct{ offset }

func (e errBehind) Error() string {
	return fmt.Sprintf("offset %d of partition %d of %s is not read yet; try again, or wait longer (up to wait=%s)",
		e.offset.offset, e.partition, e.topic, maxFresh)
}

// covers returns errBehind for an offset that is not read yet, and a badRequest for one that never will be. Of a topic
// that is known to be read, the log need not have a record.
func (c *Catalog) covers(all []offset, known bool) error {
	s := c.now.Load()
	if s == nil {
		return ErrEmpty
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	topics := map[string]bool{}
	for _, next := range s.next {
		for topic := range next {
			topics[topic] = true
		}
	}
	for _, one := range all {
		if one.partition >= len(s.next) {
			return badRequest{fmt.Errorf("min_offset: partition %d of %s; there are %d", one.partition, one.topic,
				len(s.next))}
		}
		if len(topics) > 0 && !topics[one.topic] && !known {
			return badRequest{fmt.Errorf("min_offset: %q is no topic that shards read; there are %s", one.topic,
				strings.Join(slices.Sorted(maps.Keys(topics)), ", "))}
		}
		if s.next[one.partition][one.topic] <= one.offset {
			return errBehind{one}
		}
	}
	return nil
}

// asOf is the offsets of the newest records that are read, in the form of parseOffsets, by topic and partition.
func (c *Catalog) asOf() string {
	s := c.now.Load()
	if s == nil {
		return ""
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []offset
	for partition, next := range s.next {
		for topic, at := range next {
			if at > 0 {
				all = append(all, offset{topic, partition, at - 1})
			}
		}
	}
	slices.SortFunc(all, func(a, b offset) int {
		if a.topic != b.topic {
			return strings.Compare(a.topic, b.topic)
		}
		return a.partition - b.partition
	})
	var b strings.Builder
	for i, one := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%d:%d", one.topic, one.partition, one.offset)
	}
	return b.String()
}

// fresh waits until the catalog has read what a request names, and has the header of the answer say what is read.
func (h *handler) fresh(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	list := query.Get("min_offset")
	asked, err := strconv.ParseBool(query.Get("as_of"))
	if query.Has("as_of") && err != nil {
		return badRequest{fmt.Errorf("as_of: %q is neither true nor false", query.Get("as_of"))}
	}
	if list != "" {
		if err := h.await(r, list); err != nil {
			return err
		}
	}
	if asked || list != "" {
		w.Header().Set(AsOfHeader, h.catalog.asOf()) // what is answered after this has been read, too
	}
	return nil
}

// await waits for offsets.
func (h *handler) await(r *http.Request, list string) error {
	wait := defFresh
	if given := r.URL.Query().Get("wait"); given != "" {
		var err error
		if wait, err = time.ParseDuration(given); err != nil || wait < 0 || wait > maxFresh {
			return badRequest{fmt.Errorf("wait: %q is no duration from 0s to %s", given, maxFresh)}
		}
	}
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return errBusy
	}
	all, err := h.named(r.Context(), list)
	if err != nil {
		return err
	}
	end := list == EndOffset
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		news := h.catalog.news() // before it is looked: no news is missed
		if err := h.catalog.covers(all, end); !errors.As(err, new(errBehind)) {
			return err
		}
		select {
		case <-news:
		case <-late.C:
			return h.catalog.covers(all, end)
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// named returns the offsets that a list names.
func (h *handler) named(ctx context.Context, list string) ([]offset, error) {
	if list == EndOffset {
		return h.ends(ctx)
	}
	return parseOffsets(list)
}

// endsTime bounds the question where topics end.
const endsTime = 5 * time.Second

// ends returns the newest records that the topics have now.
func (h *handler) ends(ctx context.Context) (all []offset, err error) {
	if h.Ends == nil {
		return nil, badRequest{errors.New("min_offset: end cannot be known here: the topics that producers send to " +
			"are read through copies (ingest.repartition)")}
	}
	ctx, cancel := context.WithTimeout(ctx, endsTime)
	defer cancel()
	ends, err := h.Ends(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEnds, err)
	}
	for topic, of := range ends {
		for partition, end := range of {
			if end > 0 {
				all = append(all, offset{topic, partition, end - 1})
			}
		}
	}
	return all, nil
}

// errEnds: the brokers do not say where the topics end.
var errEnds = errors.New("the brokers do not say what they have, try again in a moment")

// news returns a channel that is closed when the next Update ends that has changed something.
func (c *Catalog) news() <-chan struct{} {
	c.changed.Lock()
	defer c.changed.Unlock()
	if c.changed.news == nil {
		c.changed.news = make(chan struct{})
	}
	return c.changed.news
}

// tell tells those who wait for news.
func (c *Catalog) tell() {
	c.changed.Lock()
	defer c.changed.Unlock()
	if c.changed.news != nil {
		close(c.changed.news)
		c.changed.news = nil
	}
}
