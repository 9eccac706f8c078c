package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"giantstream/train/generation"
)

// Reads as of the end are linearizable: for each item, all clients see its writes, reads and deletions in one order,
// which keeps that of what happened one after the other, whichever of two servers they ask. A client that names the
// record that it has written, or what an answer had read, is answered with that or newer by any server. Servers and
// workers are killed and frozen meanwhile, and generations change.
//
// GIANTSTREAM_HISTORIES sets how many histories are drawn, GIANTSTREAM_HISTORY the first of them.
func TestReadsAsOfTheEndAreLinearizable(t *testing.T) {
	t.Parallel()
	const together = 8 // histories of the same processes
	first, n := envNumber(t, "GIANTSTREAM_HISTORY", 0), envNumber(t, "GIANTSTREAM_HISTORIES", 4)
	for from := first; from < first+n; from += together {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			s := newReadShop(t)
			for seed := from; seed < min(from+together, first+n); seed++ {
				if s.history(t, seed); t.Failed() {
					t.Fatalf("again: GIANTSTREAM_HISTORY=%d GIANTSTREAM_HISTORIES=1", seed)
				}
			}
		})
	}
}

// readShop is a pipeline with two servers.
type readShop struct {
	*workers
	kafka   *kgo.Client
	worker  *worker
	servers [2]*worker
	addrs   [2]string
}

// anchor is an item that stays. Questions are about it, and all others are like it.
const anchor = "anchor"

func newReadShop(t *testing.T) *readShop {
	b, err := kfake.NewCluster(kfake.Ports(0), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	w := newWorkersAt(t, b.ListenAddrs()[0])
	w.settings = strings.NewReplacer("http: {listen: \"\"}\n", "", "time: 200ms", "time: 10ms",
		"kafka: {", "kafka: {session_timeout: 2s, ", "{event_time: at}", `{attributes: ["price:number"]}`,
		"train: {", "train: {encoder: linear, ").Replace(strings.Replace(w.settings, "\n  edges: {event_time: at}", "", 1))
	s := &readShop{workers: w}
	if s.kafka, err = kgo.NewClient(kgo.SeedBrokers(b.ListenAddrs()...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kafka.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the worker:\n%s", s.worker.log())
		}
	})
	s.startWorker(t)
	for i := range 40 {
		s.put(t, fmt.Sprint("other-", i), i)
	}
	s.put(t, anchor, 1)
	until(t, "there is a generation", func() bool {
		_, err := generation.Current(t.Context(), s.store)
		return err == nil
	})
	for k := range s.servers {
		s.addrs[k] = freeAddr(t)
		s.startServer(t, k)
	}
	for k := range s.servers {
		until(t, "a server answers", func() bool {
			code, _, _ := s.read(t, k, url.Values{"min_offset": {"end"}})
			return code == http.StatusOK
		})
	}
	return s
}

func (s *readShop) startWorker(t *testing.T) {
	s.worker = s.start(t, "worker", "http: {listen: \"\"}\nrefresh: {min_nodes: 20, min_changes: 1000000}\n", "--roles",
		"stream,refresh,embed")
}

func (s *readShop) startServer(t *testing.T, k int) {
	s.servers[k] = s.start(t, fmt.Sprint("server-", k), fmt.Sprintf("http: {listen: %q}\n", s.addrs[k]), "--roles",
		"serve")
}

// put sends an item with a price, or, for 0, its deletion. It returns the place of the record once it is acknowledged.
func (s *readShop) put(t *testing.T, item string, price int) (minOffset string) {
	t.Helper()
	r := &kgo.Record{Topic: "nodes", Key: []byte(item)}
	if price != 0 {
		kinds := []string{"leather boots for hiking", "a tent of cotton", "boots of rubber", "a rope to climb"}
		r.Value = fmt.Appendf(nil, `{"id":%q,"text":"%s %d","price":%d}`, item, kinds[price%4], price, price)
	}
	done, err := s.kafka.ProduceSync(t.Context(), r).First()
	if err != nil {
		t.Error(err)
		return ""
	}
	return fmt.Sprintf("nodes:%d:%d", done.Partition, done.Offset)
}

// read asks a server for the prices of all items. The code is 0 if there was no answer.
func (s *readShop) read(t *testing.T, server int, query url.Values) (code int, prices map[string]int, asOf string) {
	query.Set("k", "1000")
	query.Set("show", "price")
	if !query.Has("wait") {
		query.Set("wait", "10s")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+s.addrs[server]+"/similar/"+anchor+"?"+query.Encode(), nil)
	if err != nil {
		t.Error(err)
		return 0, nil, ""
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, "" // it was killed
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	switch {
	case err != nil:
		return 0, nil, ""
	case a.StatusCode == http.StatusServiceUnavailable:
		return a.StatusCode, nil, ""
	case a.StatusCode != http.StatusOK:
		t.Errorf("server %d answers %d: %s", server, a.StatusCode, body)
		return a.StatusCode, nil, ""
	}
	var r struct {
		Results []struct {
			ID         string         `json:"id"`
			Attributes map[string]int `json:"attributes"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Error(err)
	}
	prices = map[string]int{}
	for _, one := range r.Results {
		prices[one.ID] = one.Attributes["price"]
	}
	return a.StatusCode, prices, a.Header.Get("Giantstream-As-Of")
}

// history runs clients and faults that a seed draws, and judges what the clients have seen.
func (s *readShop) history(t *testing.T, seed uint64) {
	t.Helper()
	const clients, steps = 4, 10
	items := []string{fmt.Sprint("a-", seed), fmt.Sprint("b-", seed), fmt.Sprint("c-", seed)}
	begin := time.Now()
	var all operations
	var done sync.WaitGroup
	for client := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		done.Go(func() {
			for step := range steps {
				item, call := items[random.IntN(len(items))], time.Since(begin)
				switch random.IntN(6) {
				case 0:
					s.put(t, item, 0)
					all.add(client, touch{item: item, write: true}, 0, call, time.Since(begin))
				case 1, 2:
					price := 1 + step*clients + client
					s.put(t, item, price)
					all.add(client, touch{item, true, price}, 0, call, time.Since(begin))
				default:
					query := url.Values{"min_offset": {"end"}}
					if random.IntN(4) == 0 {
						query.Set("wait", "20ms") // a read that is refused has happened nowhere
					}
					code, prices, _ := s.read(t, random.IntN(2), query)
					for _, item := range items {
						if code == http.StatusOK {
							all.add(client, touch{item: item}, prices[item], call, time.Since(begin))
						}
					}
				}
			}
		})
	}
	done.Go(func() { s.session(t, seed) })
	done.Go(func() { s.disturb(t, rand.New(rand.NewPCG(seed, clients))) })
	done.Wait()
	result, info := porcupine.CheckOperationsVerbose(register, all.done, time.Minute)
	reads := 0
	for _, o := range all.done {
		if !o.Input.(touch).write {
			reads++
		}
	}
	t.Logf("history %d: %d reads of an item, %d writes, %v", seed, reads, len(all.done)-reads,
		time.Since(begin).Round(time.Millisecond))
	if result != porcupine.Ok {
		path := filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.html", seed))
		t.Errorf("history %d: %v; %s shows it: %v", seed, result, path, porcupine.VisualizePath(register, info, path))
	}
}

// session is a client that reads what it has written, and never something older than what it has read.
func (s *readShop) session(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 99))
	item := fmt.Sprint("own-", seed)
	for written := 1; written <= 8; written++ {
		known, seen := s.put(t, item, written), written
		for range 3 {
			code, prices, asOf := s.read(t, random.IntN(2), url.Values{"min_offset": {known}})
			if code != http.StatusOK {
				continue
			}
			if prices[item] < seen {
				t.Errorf("history %d: after %d of %s, %q is answered with %d", seed, seen, item, known, prices[item])
			}
			seen, known = max(seen, prices[item]), cmp.Or(asOf, known)
		}
	}
}

// disturb kills and freezes processes, and makes a generation.
func (s *readShop) disturb(t *testing.T, random *rand.Rand) {
	for range 2 {
		k := random.IntN(2)
		switch random.IntN(4) {
		case 0:
			s.servers[k].kill(t)
			s.startServer(t, k)
		case 1:
			s.freeze(t, s.servers[k], time.Duration(random.IntN(800))*time.Millisecond)
		case 2:
			s.worker.kill(t)
			s.startWorker(t)
		case 3:
			succeed(t, "rebuild", "-c", filepath.Join(s.dir, "worker.yaml"))
		}
	}
}

// freeze stops a process for a while.
func (s *readShop) freeze(t *testing.T, w *worker, d time.Duration) {
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := w.cmd.Process.Signal(signal); err != nil {
			t.Error(err)
		}
		if signal == syscall.SIGSTOP {
			<-time.After(d)
		}
	}
}

// touch is a read or a write of an item. Price 0 is its deletion.
type touch struct {
	item  string
	write bool
	price int
}

// operations are what clients have done.
type operations struct {
	mu   sync.Mutex
	done []porcupine.Operation
}

func (o *operations) add(client int, in touch, out int, call, end time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = append(o.done, porcupine.Operation{ClientId: client, Input: in, Call: call.Nanoseconds(), Output: out,
		Return: end.Nanoseconds()})
}

// register is what an item is meant to be: it has the price that was written last, 0 of none.
var register = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byItem := map[string][]porcupine.Operation{}
		for _, o := range all {
			item := o.Input.(touch).item
			byItem[item] = append(byItem[item], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byItem {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(touch); in.write {
			return true, in.price
		}
		return output == state, state
	},
	DescribeOperation: func(input, output any) string {
		switch in := input.(touch); {
		case !in.write:
			return fmt.Sprint("read ", output)
		case in.price == 0:
			return "delete"
		default:
			return fmt.Sprint("write ", in.price)
		}
	},
}
