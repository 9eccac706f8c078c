package answer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"giantstream/internal/tempfile"
	"giantstream/train/numeric"
)

// ErrTexts: the texts that reasons are of are being read. The next Update reads them.
var ErrTexts = errors.New("the texts are being read for the first reasons, try again in a moment")

// texts has the texts of all nodes in a temporary file, once a question has asked for reasons. From then on it follows
// the commit log. In memory are 20 to 40 bytes a node.
type texts struct {
	wanted atomic.Bool
	seq    []int64 // by shard: the newest manifest that is in the file; nil without one. Of Update alone.

	mu         sync.Mutex
	file       *tempfile.File
	at         map[uint64]int64 // where a record is, by hash of the id
	size, live int64            // bytes of the file, and of the records that count
	complete   bool
	err        error // why there is no file
}

const (
	recordHead = 8       // bytes before id and text: their lengths
	textBuffer = 1 << 20 // bytes that are written at a time
	// idleTexts is how many bytes may be of no record beside as many that are of one.
	idleTexts = 64 << 20
)

// update reads what was committed since the last call and not taken along, if that is not up to the manifests of seq.
// Questions have the former texts meanwhile.
func (t *texts) update(ctx context.Context, log Log, seq []int64) error {
	if !t.wanted.Load() {
		return nil
	}
	if err := t.begin(len(seq)); err != nil {
		t.fail(err)
		return nil
	}
	for shard, to := range seq {
		if t.seq[shard] >= to {
			continue // a look at the log would be a request to the store
		}
		for stretch, err := range log.Stretches(ctx, shard, t.seq[shard]) {
			if err != nil {
				return err
			}
			t.takeAlong(shard, t.seq[shard], &stretch)
			for _, err := range stretch.Rows {
				if err != nil {
					return err
				}
			}
			if t.file == nil {
				return nil // it has failed
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = true
	return nil
}

// takeAlong has the texts of a stretch after a manifest taken as its rows are read, if that is where the texts end. If
// not all rows are read, they are taken again the next time.
func (t *texts) takeAlong(shard int, after int64, s *Stretch) {
	if t.file == nil || t.seq[shard] != after {
		return
	}
	rows, to := s.Rows, s.To
	s.Rows = func(yield func(Row, error) bool) {
		b := &textBatch{texts: t}
		var failed error
		for r, err := range rows {
			if err == nil && failed == nil && !r.AttributesAlone {
				failed = b.add(&r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		if failed == nil {
			failed = b.flush()
		}
		if failed != nil {
			t.fail(failed)
			return
		}
		t.seq[shard] = to
	}
}

// begin makes the file, or begins it anew if most of it counts no more.
func (t *texts) begin(shards int) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		if t.file, err = tempfile.Create("giantstream-texts-*"); err != nil {
			return err
		}
	} else if t.size <= 2*t.live+idleTexts {
		return nil
	}
	t.seq, t.at, t.size, t.live, t.complete = make([]int64, shards), map[uint64]int64{}, 0, 0, false
	return t.file.Truncate(0)
}

// fail gives the file up: what is near needs no texts. The next question for reasons has another one begun.
func (t *texts) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted.Store(false)
	t.err = fmt.Errorf("keep texts in a temporary file: %w", err)
	if t.file != nil {
		t.err = errors.Join(t.err, t.file.Close())
	}
	t.file, t.at, t.complete = nil, nil, false
}

// get returns the texts of nodes, "" for those that have none: ErrTexts if they are not read yet.
func (t *texts) get(ids []string) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted.Store(true)
	if !t.complete {
		err := t.err
		t.err = nil
		if err == nil {
			err = ErrTexts
		}
		return nil, err
	}
	all := make([]string, len(ids))
	for i, id := range ids {
		is, text, err := t.read(numeric.HashString(id))
		if err != nil {
			return nil, err
		}
		if is == id {
			all[i] = text
		}
	}
	return all, nil
}

// read returns the record of a hash, nothing if there is none.
func (t *texts) read(hash uint64) (id, text string, err error) {
	at, has := t.at[hash]
	if !has {
		return "", "", nil
	}
	var head [recordHead]byte
	if _, err := t.file.ReadAt(head[:], at); err != nil {
		return "", "", fmt.Errorf("read a text: %w", err)
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	body := make([]byte, n+int(binary.LittleEndian.Uint32(head[4:])))
	if _, err := t.file.ReadAt(body, at+recordHead); err != nil {
		return "", "", fmt.Errorf("read a text: %w", err)
	}
	return string(body[:n]), string(body[n:]), nil
}

// textBatch is rows of a stretch on their way into the file.
type textBatch struct {
	*texts
	bytes   []byte
	hashes  []uint64
	lengths []int64 // of the records in bytes, 0 for a node that has no text any more
}

func (b *textBatch) add(r *Row) error {
	b.hashes = append(b.hashes, numeric.HashString(r.NodeID))
	before := len(b.bytes)
	if !r.Deleted && r.Text != "" {
		b.bytes = binary.LittleEndian.AppendUint32(b.bytes, uint32(len(r.NodeID)))
		b.bytes = binary.LittleEndian.AppendUint32(b.bytes, uint32(len(r.Text)))
		b.bytes = append(append(b.bytes, r.NodeID...), r.Text...)
	}
	b.lengths = append(b.lengths, int64(len(b.bytes)-before))
	if len(b.bytes) < textBuffer {
		return nil
	}
	return b.flush()
}

// flush writes the batch. What it replaces is overwritten: a deleted node's text is to be nowhere.
func (b *textBatch) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.file.WriteAt(b.bytes, b.size); err != nil {
		return err
	}
	for i, hash := range b.hashes {
		if at, has := b.at[hash]; has {
			id, text, err := b.read(hash)
			if err == nil {
				_, err = b.file.WriteAt(make([]byte, len(id)+len(text)), at+recordHead)
			}
			if err != nil {
				return err
			}
			b.live -= int64(recordHead + len(id) + len(text))
			delete(b.at, hash)
		}
		if n := b.lengths[i]; n > 0 {
			b.at[hash] = b.size
			b.size, b.live = b.size+n, b.live+n
		}
	}
	b.bytes, b.hashes, b.lengths = b.bytes[:0], b.hashes[:0], b.lengths[:0]
	return nil
}
