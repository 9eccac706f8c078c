package training

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"giantstream/internal/seal"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/objectives/together"
)

// The processes that train an encoder together meet in a folder of the leader's task:
//
//	group/leader.json        who leads: the id of a meeting
//	group/<id>/join-<name>   a helper that wants to take part
//	group/<id>/welcome-<name>, group/<id>/state-<n>   the training between exchanges n and n+1
//	group/<id>/<n>/<k>-<name>   part k of exchange n, after its CRC-32C
//	group/<id>/<n>/all       who did which part, and who takes part in the next exchange
//
// The leader decides. It waits for the part of a helper for a while, and then does that part itself and goes on
// without the helper. A helper that hears nothing of its leader leaves.
const leaderName = "leader"

var (
	errSilent  = errors.New("the other process has not answered in time")
	errDropped = errors.New("the leader of the training goes on without this process")
)

var partTable = crc32.MakeTable(crc32.Castagnoli)

const defaultPatience = 30 * time.Second

// meeting is one process's side of a training of several. It implements together.Group.
type meeting struct {
	ctx      context.Context
	store    sink.Store
	all      string // the folder of all meetings
	folder   string // of this one
	name     string
	patience time.Duration

	roster  []string      // who takes part in the next exchange, the leader first
	joining []string      // of the leader: who will take part in the one after
	done    int64         // exchanges so far
	took    time.Duration // its own part of the last one
	kept    [][]string
}

// agreement is the document of an exchange.
type agreement struct {
	Parts  []string `json:"parts"` // who did part k
	Roster []string `json:"roster"`
}

// meetingID is leader.json.
type meetingID struct {
	ID string `json:"id"`
}

// invitation tells a helper where the training is.
type invitation struct {
	Done   int64    `json:"done"`
	Roster []string `json:"roster"`
	State  string   `json:"state"`
}

var _ together.Group = (*meeting)(nil)

func (m *meeting) leads() bool { return m.name == leaderName }

func (m *meeting) part(k int, by string) string {
	return fmt.Sprintf("%s%012d/%d-%s", m.folder, m.done, k, by)
}

func (m *meeting) agreementKey() string { return fmt.Sprintf("%s%012d/all", m.folder, m.done) }

// Exchange implements together.Group.
func (m *meeting) Exchange(work func(from, to int) ([]byte, error)) ([]together.Part, error) {
	m.done++
	parts := make([]together.Part, min(len(m.roster), together.Slices))
	for k := range parts {
		parts[k].From, parts[k].To = k*together.Slices/len(parts), (k+1)*together.Slices/len(parts)
	}
	if own := slices.Index(m.roster, m.name); own >= 0 && own < len(parts) {
		p := &parts[own]
		begun := time.Now()
		var err error
		if p.Data, err = work(p.From, p.To); err != nil {
			return nil, err
		}
		m.took = time.Since(begun)
		if m.leads() && len(parts) == 1 && len(m.joining) == 0 {
			return parts, nil // nobody else wants to know
		}
		if err := m.put(m.part(own, m.name), p.Data); err != nil {
			return nil, err
		}
	}
	if m.leads() {
		return parts, m.agree(parts, work)
	}
	return parts, m.follow(parts)
}

// agree collects the parts of the helpers, does those that are missing, and tells who did what.
func (m *meeting) agree(parts []together.Part, work func(from, to int) ([]byte, error)) (err error) {
	a := agreement{Roster: []string{m.name}}
	var keys []string
	for k := range parts {
		p, by := &parts[k], m.roster[k]
		if by != m.name {
			p.Data, err = m.read(m.part(k, by))
			switch {
			case err == nil:
				a.Roster = append(a.Roster, by)
			case errors.Is(err, errSilent):
				by = m.name
				if p.Data, err = work(p.From, p.To); err == nil {
					err = m.put(m.part(k, by), p.Data)
				}
			}
			if err != nil {
				return err
			}
		}
		a.Parts = append(a.Parts, by)
		keys = append(keys, m.part(k, by))
	}
	a.Roster = append(a.Roster, m.joining...)
	a.Roster = a.Roster[:min(len(a.Roster), together.Slices)]
	m.roster, m.joining = a.Roster, nil
	if err := putDocument(m.ctx, m.store, m.agreementKey(), a); err != nil {
		return err
	}
	// Every process that takes part has read the objects of the exchange before the last.
	if m.kept = append(m.kept, append(keys, m.agreementKey())); len(m.kept) > 2 {
		for _, key := range m.kept[0] {
			if err := m.store.Delete(m.ctx, key); err != nil {
				return err
			}
		}
		m.kept = m.kept[1:]
	}
	return nil
}

// follow reads what the leader and the other helpers have done.
func (m *meeting) follow(parts []together.Part) error {
	a, err := m.agreed()
	if err != nil {
		return err
	}
	if len(a.Parts) != len(parts) {
		return fmt.Errorf("%w: %d parts where there should be %d", errDropped, len(a.Parts), len(parts))
	}
	for k := range parts {
		if a.Parts[k] == m.name {
			continue
		}
		var err error
		if parts[k].Data, err = m.read(m.part(k, a.Parts[k])); err != nil {
			return err
		}
	}
	if m.roster = a.Roster; !slices.Contains(m.roster, m.name) {
		return errDropped
	}
	return nil
}

// wait is how long others may take: their parts are as large as the own one, their machines may be slower.
func (m *meeting) wait() time.Duration { return max(m.patience, 4*m.took) }

// agreed waits for the leader's document of an exchange, as long as there is no other leader.
func (m *meeting) agreed() (a agreement, err error) {
	for begun := time.Now(); ; {
		err := m.document(m.agreementKey(), time.Second, &a)
		if !errors.Is(err, errSilent) || time.Since(begun) > 4*m.wait() {
			return a, err
		}
		now, err := leaderNow(m.ctx, m.store, m.all)
		if err != nil {
			return a, err
		}
		if m.all+now+"/" != m.folder {
			return a, fmt.Errorf("%w: there is another leader", errDropped)
		}
	}
}

// leaderNow returns the id of the newest meeting below a folder: sink.ErrNotFound if there was none.
func leaderNow(ctx context.Context, store sink.Store, all string) (string, error) {
	data, err := sink.ReadAll(ctx, store, all+"leader.json")
	if err != nil {
		return "", err
	}
	var now meetingID
	return now.ID, openDocument(store, all+"leader.json", data, &now)
}

// put stores a part after its checksum.
func (m *meeting) put(key string, data []byte) error {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(data)), crc32.Checksum(data, partTable))
	return sink.PutBytes(m.ctx, m.store, key, append(b, data...))
}

// read waits for a part. One that is damaged counts as none.
func (m *meeting) read(key string) ([]byte, error) {
	b, err := await(m.ctx, m.store, key, m.wait())
	if err != nil {
		return nil, err
	}
	if len(b) < 4 || crc32.Checksum(b[4:], partTable) != binary.LittleEndian.Uint32(b) {
		return nil, fmt.Errorf("%s is damaged: %w", key, errSilent)
	}
	return b[4:], nil
}

// document waits for a document.
func (m *meeting) document(key string, patience time.Duration, into any) error {
	b, err := await(m.ctx, m.store, key, patience)
	if err != nil {
		return err
	}
	return openDocument(m.store, key, b, into)
}

// await reads an object that somebody will write: errSilent if that takes too long.
func await(ctx context.Context, store sink.Store, key string, patience time.Duration) ([]byte, error) {
	begun := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		b, err := sink.ReadAll(ctx, store, key)
		if !errors.Is(err, sink.ErrNotFound) {
			return b, err
		}
		if time.Since(begun) > patience {
			return nil, fmt.Errorf("%s: %w", key, errSilent)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func putDocument(ctx context.Context, store sink.Store, key string, v any) error {
	data, err := seal.JSON(v, sink.PlaceOf(store, key))
	if err != nil {
		return err
	}
	return sink.PutBytes(ctx, store, key, data)
}

func openDocument(store sink.Store, key string, data []byte, into any) error {
	body, sealed, err := seal.Open(data, sink.PlaceOf(store, key))
	if err == nil && !sealed {
		err = errors.New("it has no checksum")
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", key, sink.ErrDamaged, err)
	}
	return nil
}

// groupFolder is where those who train the encoder of a generation meet.
func groupFolder(g int64) string {
	return work.Folder(tasks.Task{Generation: g, Stage: stages.Encoder}) + "group/"
}
