package fit

import (
	"context"

	"giantstream/internal/ambient"
)

// block is how many nodes a pass takes at a time.
const block = 4096

// Texts are the nodes' texts, spooled. Append all of them, then call Arrange; from then on Text is
// safe for concurrent use.
type Texts struct {
	spool *spool
	order []int32 // node i's text is record order[i]
}

// NewTexts returns Texts that keep their share of r.MemoryLimit in memory. Close them after use.
func NewTexts(r Resources) *Texts { return &Texts{spool: r.spool(textShare)} }

// Append adds a text.
func (t *Texts) Append(text string) error { return t.spool.append([]byte(text)) }

// Arrange ends the appending: node i's text is the order[i]-th that was appended, from 0.
func (t *Texts) Arrange(order []int32) error {
	t.order = order
	return t.spool.seal()
}

// Subset returns the texts of some nodes, numbered as they are listed. It reads what t keeps, so it
// is of use until t is closed, and need not be closed.
func (t *Texts) Subset(nodes []int32) *Texts {
	order := make([]int32, len(nodes))
	for k, i := range nodes {
		order[k] = t.order[i]
	}
	return &Texts{spool: t.spool, order: order}
}

// Len returns the number of nodes.
func (t *Texts) Len() int { return len(t.order) }

// Text returns node i's text.
func (t *Texts) Text(i int) (string, error) {
	b, err := t.spool.recordAt(int(t.order[i]), nil)
	return string(b), err
}

// Close gives memory and file back. It may be called more than once.
func (t *Texts) Close() error { return t.spool.close() }

// blocks calls visit with the texts of the nodes from lo on, a block after the
// other in ascending order. The slice is valid during the call.
func (t *Texts) blocks(ctx context.Context, p ambient.Progress, visit func(lo int, texts []string) error) error {
	buffer := make([]string, 0, block)
	var record []byte
	for lo := 0; lo < t.Len(); lo += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		buffer = buffer[:0]
		for i := lo; i < min(lo+block, t.Len()); i++ {
			var err error
			if record, err = t.spool.recordAt(int(t.order[i]), record); err != nil {
				return err
			}
			buffer = append(buffer, string(record))
		}
		if err := visit(lo, buffer); err != nil {
			return err
		}
		p.Add(int64(len(buffer)))
	}
	return nil
}
